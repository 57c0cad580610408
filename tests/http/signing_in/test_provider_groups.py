"""Roles here follow the groups that somebody has at a provider, from sign-in to sign-in."""

from collections.abc import Iterable

import pytest

from domain.access.roles import Role
from domain.audit.events import EventKind
from models import User
from tests.support.accounts.administration import id_of
from tests.support.accounts.people import database_of, make_user, unique
from tests.support.database.audit_log import event_about, events_about
from tests.support.service.live import LiveGatebell
from tests.support.signing_in.openid_provider import (
    FakeProvider,
    add_provider,
    number_of,
    sign_in_through,
)
from tests.support.signing_in.provider_groups import new_group, person_of, role_of, set_role
from tests.support.signing_in.second_factors import assert_signed_in


def mapped(gatebell: LiveGatebell, provider: FakeProvider, *lines: str) -> str:
    """Return the slug of the provider, with roles for its groups."""
    options = [part for line in lines for part in ("--group-roles", line)]
    return add_provider(gatebell, provider.url, "--creates-accounts", *options)


def sign_in_with(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, groups: Iterable[str] | None
) -> None:
    """Sign in as a member of these groups."""
    provider.person["groups"] = None if groups is None else list(groups)
    assert_signed_in(sign_in_through(gatebell, provider, slug))


@pytest.mark.both_databases
def test_a_role_comes_changes_and_goes_with_the_groups(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    slug = mapped(
        gatebell, provider, f"/sre = {group}: Developer", f"sre leads = {group}: Maintainer"
    )
    for groups, role in (
        (["/sre", "others"], Role.DEVELOPER),
        (["/sre", "sre leads"], Role.MAINTAINER),
        (["/sre"], Role.DEVELOPER),
        (["others"], None),
        (["sre leads"], Role.MAINTAINER),
        (None, None),
    ):
        sign_in_with(gatebell, provider, slug, groups)
        assert role_of(gatebell, provider, group) is role, groups
    kinds = [each.kind for each in reversed(events_about(gatebell, person_of(provider)))]
    assert [each for each in kinds if each.startswith("member.")] == [
        EventKind.MEMBER_ADDED,
        EventKind.MEMBER_CHANGED,
        EventKind.MEMBER_CHANGED,
        EventKind.MEMBER_REMOVED,
        EventKind.MEMBER_ADDED,
        EventKind.MEMBER_REMOVED,
    ]


def test_groups_that_are_elsewhere_change_nothing(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    slug = mapped(gatebell, provider, f"sre = {group}: Developer")
    sign_in_with(gatebell, provider, slug, ["sre"])
    provider.person["_claim_names"] = {"groups": "src1"}
    sign_in_with(gatebell, provider, slug, None)
    assert role_of(gatebell, provider, group) is Role.DEVELOPER


def test_what_somebody_here_gave_or_changed_stays(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    slug = mapped(gatebell, provider, f"sre = {group}: Developer")
    sign_in_with(gatebell, provider, slug, [])
    username = person_of(provider).username
    set_role(gatebell, username, group, Role.GUEST)
    for groups in (["sre"], []):
        sign_in_with(gatebell, provider, slug, groups)
        assert role_of(gatebell, provider, group) is Role.GUEST
    set_role(gatebell, username, group, None)
    sign_in_with(gatebell, provider, slug, ["sre"])
    set_role(gatebell, username, group, Role.OWNER)
    for groups in (["sre"], []):
        sign_in_with(gatebell, provider, slug, groups)
        assert role_of(gatebell, provider, group) is Role.OWNER


def test_the_last_owner_of_a_group_stays_one(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    founder = make_user(gatebell)
    group = gatebell.cli("groups", "create", unique("acme"), "--owner", founder.username)["path"]
    slug = mapped(gatebell, provider, f"leads = {group}: Owner", f"sre = {group}: Guest")
    sign_in_with(gatebell, provider, slug, ["leads"])
    set_role(gatebell, founder.username, group, None)
    for groups in (["sre"], []):
        sign_in_with(gatebell, provider, slug, groups)
        assert role_of(gatebell, provider, group) is Role.OWNER
    set_role(gatebell, founder.username, group, Role.OWNER)
    sign_in_with(gatebell, provider, slug, [])
    assert role_of(gatebell, provider, group) is None


def test_a_deleted_group_is_no_obstacle(gatebell: LiveGatebell, provider: FakeProvider) -> None:
    group, other = new_group(gatebell), new_group(gatebell)
    slug = mapped(gatebell, provider, f"sre = {group}: Guest", f"sre = {other}: Guest")
    sign_in_with(gatebell, provider, slug, ["sre"])
    gatebell.cli("groups", "delete", group, "--yes")
    sign_in_with(gatebell, provider, slug, ["sre"])
    sign_in_with(gatebell, provider, slug, [])
    assert role_of(gatebell, provider, other) is None


@pytest.mark.both_databases
def test_members_of_one_group_there_are_administrators_here(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    options = ("--creates-accounts", "--administrators-group", "wheel")
    slug = add_provider(gatebell, provider.url, *options)

    def is_admin() -> bool:
        with database_of(gatebell) as session:
            user = session.get_one(User, id_of(gatebell, person_of(provider)))
            return user.is_admin

    for groups, expected in ((["staff"], False), (["wheel"], True), (["staff"], False)):
        sign_in_with(gatebell, provider, slug, groups)
        assert is_admin() is expected, groups
    first, second = reversed(events_about(gatebell, person_of(provider), EventKind.USER_CHANGED))
    assert [each.details["administrator"] for each in (first, second)] == [True, False]
    # Who is one for another reason stays one.
    with database_of(gatebell) as session:
        session.get_one(User, id_of(gatebell, person_of(provider))).is_admin = True
    sign_in_with(gatebell, provider, slug, ["wheel"])
    sign_in_with(gatebell, provider, slug, ["staff"])
    assert is_admin()


def test_what_a_provider_gave_ends_with_it(gatebell: LiveGatebell, provider: FakeProvider) -> None:
    group = new_group(gatebell)
    slug = mapped(gatebell, provider, f"sre = {group}: Developer")
    sign_in_with(gatebell, provider, slug, ["sre"])
    person = person_of(provider)
    gatebell.cli("identity-providers", "delete", number_of(gatebell, slug))
    event_about(gatebell, person, EventKind.MEMBER_REMOVED)
