"""Tests of signing in through OpenID Connect providers, and of roles that follow their groups."""

from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

import pytest
import requests
from sqlalchemy import select

from domain.access.roles import Role
from domain.accounts.users import find_user
from domain.audit.events import EventKind
from models import Identity, SignIn, User
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.people import (
    cookie_domain,
    database_of,
    make_user,
    set_state,
    unique,
)
from tests.support.database.audit_log import get_event_about_user, list_events_about_user
from tests.support.oauth.oauth_wire import open_authorization, parse_redirect, server_application
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import (
    FakeProvider,
    add_provider,
    ask_to_sign_in,
    find_provider_id,
    landing_page,
    last_failure,
    open_response_url,
    running_provider,
    sign_in_through,
)
from tests.support.sign_in.provider_groups import new_group, person_of, role_of, set_role
from tests.support.sign_in.second_factors import (
    assert_signed_in,
    code_of,
    give_app,
    give_code,
    is_signed_in,
    methods_of,
)
from tests.support.wire.html_forms import form_to, submit


def user_of(gatebell: LiveGatebell, provider: FakeProvider) -> User:
    """Return the account that is connected with the current user of the provider."""
    statement = (
        select(User)
        .join(Identity, Identity.user_id == User.id)
        .where(Identity.subject == provider.person["sub"])
    )
    with database_of(gatebell) as session:
        found = session.scalars(statement).one()
        session.expunge(found)
        return found


@pytest.mark.long
@pytest.mark.both_databases
def test_a_new_user_gets_an_account_with_the_data_from_the_provider(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = gatebell.http()
    assert_signed_in(sign_in_through(gatebell, provider, slug, browser))
    user = user_of(gatebell, provider)
    assert (user.username, user.email) == (
        provider.person["preferred_username"],
        provider.person["email"],
    )
    assert (user.name, user.password_hash, user.is_admin) == ("Dana", "", False)
    assert user.email_confirmed_at is not None
    assert is_signed_in(gatebell, browser)
    assert methods_of(gatebell, person_of(provider)) == "fed"
    for kind in (EventKind.USER_CREATED, EventKind.IDENTITY_CONNECTED, EventKind.SIGNED_IN):
        get_event_about_user(gatebell, person_of(provider), kind)


def test_a_user_is_recognized_under_another_name_and_address(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    sign_in_through(gatebell, provider, slug)
    first = user_of(gatebell, provider)
    new = unique("renamed")
    provider.person |= {"preferred_username": new, "email": f"{new}@elsewhere.example"}
    assert_signed_in(sign_in_through(gatebell, provider, slug))
    second = user_of(gatebell, provider)
    # The account keeps its own name and address.
    assert (second.id, second.username, second.email) == (first.id, first.username, first.email)
    with database_of(gatebell) as session:
        seen = session.scalars(select(Identity).where(Identity.user_id == first.id)).one()
        assert seen.email == f"{new}@elsewhere.example"


@pytest.mark.long
@pytest.mark.advisory("CVE-2022-31107")
def test_a_taken_or_invalid_username_is_replaced(gatebell: LiveGatebell) -> None:
    taken = make_user(gatebell).username
    # Metadata are cached for an hour, so this test needs its own provider without userinfo.
    with running_provider() as provider:
        provider.metadata = {"userinfo_endpoint": None}
        slug = add_provider(gatebell, provider.url, "--creates-accounts")
        for wanted, expected in (
            (taken, f"{taken}-2"),
            (f"{taken}@people.example", f"{taken}-3"),
            (f"Zoë {taken}!", f"Zo-{taken}"),
            ("☃", "user"),
            (None, None),
        ):
            provider.is_about(preferred_username=wanted)
            provider.claims = {"preferred_username": wanted}
            assert_signed_in(sign_in_through(gatebell, provider, slug))
            username = user_of(gatebell, provider).username
            if expected is None:
                assert username == provider.person["email"].partition("@")[0]
            else:
                assert username.startswith(expected), username


@pytest.mark.parametrize(
    ("options", "person", "reason"),
    [
        ((), {}, "does not create accounts"),
        (("--creates-accounts",), {"email_verified": False}, "not verified"),
        (("--creates-accounts",), {"email_verified": None}, "not verified"),
        (("--creates-accounts",), {"email": None}, "without a valid email"),
        (("--creates-accounts",), {"email": "no address"}, "without a valid email"),
        # A conversion of these addresses would yield addresses that the provider did not verify.
        (("--creates-accounts",), {"email": "da\u200bna@people.example"}, "without a valid email"),
        (("--creates-accounts",), {"email": f"dana@{'x.' * 130}example"}, "without a valid email"),
        (("--creates-accounts", "--email-domains", "other.example"), {}, "not allowed"),
    ],
)
def test_an_unknown_user_without_an_account_gets_instructions(
    gatebell: LiveGatebell,
    provider: FakeProvider,
    options: tuple[str, ...],
    person: dict[str, object],
    reason: str,
) -> None:
    slug = add_provider(gatebell, provider.url, *options)
    provider.person |= person
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser)
    assert page.status_code == 400
    assert "account is not connected to an account here." in page.text
    assert "ask an administrator" in page.text
    assert not is_signed_in(gatebell, browser)
    assert reason in last_failure(gatebell, slug)


@pytest.mark.advisory("CVE-2023-3128", "CVE-2024-25618")
@pytest.mark.parametrize("is_verified", [True, False])
def test_a_matching_address_does_not_connect_an_existing_account(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, *, is_verified: bool
) -> None:
    charlie = make_user(gatebell, name="charlie")
    provider.person |= {"email": charlie.email.upper(), "email_verified": is_verified}
    page = sign_in_through(gatebell, provider, slug)
    unknown = add_provider(gatebell, provider.url, title=slug)
    provider.is_about()
    # The page is the same as for an unknown user.
    assert page.status_code == 400
    nobody = sign_in_through(gatebell, provider, unknown)
    assert message_on(page) == message_on(nobody)
    with database_of(gatebell) as session:
        found = find_user(charlie.email, session=session)
        assert found is not None
        rows = session.scalars(select(Identity).where(Identity.user_id == found.id)).all()
        assert (found.username, rows) == (charlie.username, [])


def message_on(page: requests.Response) -> str:
    return page.text.partition('<div class="notice')[2].partition("</div>")[0]


def test_a_trusted_directory_does_not_need_to_verify_addresses(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    options = ("--creates-accounts", "--vouches-for-email", "--email-domains", "people.example")
    slug = add_provider(gatebell, provider.url, *options)
    provider.person |= {"email_verified": None}
    assert_signed_in(sign_in_through(gatebell, provider, slug))


@pytest.mark.rfc("rfc9700-2.1.2-b", "rfc9700-4.3.2-a")
def test_claims_missing_in_the_id_token_come_from_userinfo(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    provider.claims = {"email": None, "email_verified": None}
    assert_signed_in(sign_in_through(gatebell, provider, slug))
    assert user_of(gatebell, provider).email == provider.person["email"]


def test_a_locked_account_cannot_sign_in_through_a_provider(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    sign_in_through(gatebell, provider, slug)
    set_state(gatebell, person_of(provider), "locked")
    page = sign_in_through(gatebell, provider, slug)
    assert page.status_code == 400
    assert "Your account is locked" in page.text


@pytest.mark.long
def test_a_deactivated_account_is_activated_by_the_sign_in(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    sign_in_through(gatebell, provider, slug)
    set_state(gatebell, person_of(provider), "deactivated")
    assert_signed_in(sign_in_through(gatebell, provider, slug))
    with database_of(gatebell) as session:
        username = person_of(provider).username
        user = session.scalars(select(User).where(User.username == username)).one()
        assert user.state == "active"


@pytest.mark.rfc("rfc9700-4.11.1-a")
def test_the_sign_in_redirects_only_to_the_requested_local_page(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    for asked, lands_on in (
        ("/-/user_settings/security", "/-/user_settings/security"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
    ):
        browser = gatebell.http()
        begun = ask_to_sign_in(gatebell, browser, slug, at=f"/users/sign_in?next={asked}")
        answer = open_response_url(browser, provider.response_to(begun.headers["Location"]))
        assert_signed_in(answer, lands_on=lands_on)


@pytest.mark.both_databases
def test_an_application_gets_its_code_after_the_sign_in(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = gatebell.http()
    page = open_authorization(browser, gatebell, server_application(gatebell))
    begun = submit(browser, page, form_to(page, f"/users/auth/{slug}"))
    answer = open_response_url(browser, provider.response_to(begun.headers["Location"]))
    onward = browser.get(urljoin(answer.url, answer.headers["Location"]), allow_redirects=False)
    assert "code" in parse_redirect(onward)


def test_a_session_from_before_the_sign_in_stays_signed_out(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = gatebell.http()
    begun = ask_to_sign_in(gatebell, browser, slug)
    fixed = browser.cookies.get_dict()
    assert_signed_in(open_response_url(browser, provider.response_to(begun.headers["Location"])))
    other = gatebell.http()
    for name, value in fixed.items():
        other.cookies.set(name, value, domain=cookie_domain(gatebell))
    assert not is_signed_in(gatebell, other)


def test_an_account_with_a_second_factor_needs_it_after_the_provider(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    sign_in_through(gatebell, provider, slug)
    person = person_of(provider)
    app = give_app(gatebell, person)
    provider.claims = {"amr": ["pwd", "otp", "mfa"]}
    browser = gatebell.http()
    answer = sign_in_through(gatebell, provider, slug, browser)
    assert urlsplit(answer.headers["Location"]).path == "/users/two_factor"
    assert not is_signed_in(gatebell, browser)
    step = landing_page(browser, answer)
    assert_signed_in(give_code(browser, step, code_of(app)))
    assert methods_of(gatebell, person) == "fed otp mfa"


def test_a_trusted_provider_can_verify_the_second_factor(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    options = ("--creates-accounts", "--trusts-second-factor")
    slug = add_provider(gatebell, provider.url, *options)
    sign_in_through(gatebell, provider, slug)
    give_app(gatebell, person_of(provider))
    provider.claims = {"amr": ["pwd"]}
    asked = sign_in_through(gatebell, provider, slug)
    assert urlsplit(asked.headers["Location"]).path == "/users/two_factor"
    provider.claims = {"amr": ["pwd", "mfa"]}
    assert_signed_in(sign_in_through(gatebell, provider, slug))
    assert methods_of(gatebell, person_of(provider)) == "fed mfa"


@pytest.mark.advisory("CVE-2026-1486")
def test_an_inactive_or_unknown_provider_cannot_sign_users_in(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = gatebell.http()
    begun = ask_to_sign_in(gatebell, browser, slug)
    gatebell.cli("identity-providers", "change", find_provider_id(gatebell, slug), "--no-active")
    back = open_response_url(browser, provider.response_to(begun.headers["Location"]))
    page = browser.get(f"{gatebell.url}/users/sign_in")
    assert (back.status_code, slug in page.text) == (404, False)
    form = form_to(page, "/users/sign_in")
    address = f"{gatebell.url}/users/auth/{slug}"
    gone = browser.post(address, data={"csrf_token": form.value("csrf_token")})
    assert gone.status_code == 404
    assert "cannot sign in through this identity provider" in gone.text


@pytest.mark.both_databases
def test_deleting_a_provider_ends_its_sign_ins_and_keeps_accounts(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = gatebell.http()
    sign_in_through(gatebell, provider, slug, browser)
    user = user_of(gatebell, provider)
    gatebell.cli("identity-providers", "delete", find_provider_id(gatebell, slug))
    assert not is_signed_in(gatebell, browser)
    with database_of(gatebell) as session:
        assert session.get(User, user.id) is not None
        rows = session.scalars(select(SignIn).where(SignIn.user_id == user.id)).all()
        assert rows == []


def test_the_sign_in_button_needs_a_form_token(gatebell: LiveGatebell, slug: str) -> None:
    browser = gatebell.http()
    answer = browser.post(f"{gatebell.url}/users/auth/{slug}", allow_redirects=False)
    # The sign-in page is shown again, without a redirect to the provider.
    location = answer.headers["Location"]
    assert (answer.status_code, urlsplit(location).path) == (303, "/users/sign_in")
    assert not is_signed_in(gatebell, browser)


# Roles that follow the groups at the provider


def with_roles(gatebell: LiveGatebell, provider: FakeProvider, *lines: str) -> str:
    """Return the slug of a provider that gives roles to members of groups."""
    options = [part for line in lines for part in ("--group-roles", line)]
    return add_provider(gatebell, provider.url, "--creates-accounts", *options)


def sign_in_with(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, groups: Iterable[str] | None
) -> None:
    """Sign in as a member of these groups."""
    provider.person["groups"] = None if groups is None else list(groups)
    assert_signed_in(sign_in_through(gatebell, provider, slug))


@pytest.mark.long
@pytest.mark.both_databases
def test_a_role_follows_the_groups_at_each_sign_in(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    slug = with_roles(
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
    kinds = [each.kind for each in reversed(list_events_about_user(gatebell, person_of(provider)))]
    assert [each for each in kinds if each.startswith("member.")] == [
        EventKind.MEMBER_ADDED,
        EventKind.MEMBER_CHANGED,
        EventKind.MEMBER_CHANGED,
        EventKind.MEMBER_REMOVED,
        EventKind.MEMBER_ADDED,
        EventKind.MEMBER_REMOVED,
    ]


def test_distributed_group_claims_change_no_roles(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    slug = with_roles(gatebell, provider, f"sre = {group}: Developer")
    sign_in_with(gatebell, provider, slug, ["sre"])
    provider.person["_claim_names"] = {"groups": "src1"}
    sign_in_with(gatebell, provider, slug, None)
    assert role_of(gatebell, provider, group) is Role.DEVELOPER


def test_manually_given_or_changed_roles_are_kept(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    slug = with_roles(gatebell, provider, f"sre = {group}: Developer")
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


@pytest.mark.long
def test_the_last_owner_of_a_group_keeps_the_role(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    founder = make_user(gatebell)
    group = gatebell.cli("groups", "create", unique("acme"), "--owner", founder.username)["path"]
    slug = with_roles(gatebell, provider, f"leads = {group}: Owner", f"sre = {group}: Guest")
    sign_in_with(gatebell, provider, slug, ["leads"])
    set_role(gatebell, founder.username, group, None)
    for groups in (["sre"], []):
        sign_in_with(gatebell, provider, slug, groups)
        assert role_of(gatebell, provider, group) is Role.OWNER
    set_role(gatebell, founder.username, group, Role.OWNER)
    sign_in_with(gatebell, provider, slug, [])
    assert role_of(gatebell, provider, group) is None


@pytest.mark.long
def test_a_deleted_group_does_not_prevent_a_sign_in(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group, other = new_group(gatebell), new_group(gatebell)
    slug = with_roles(gatebell, provider, f"sre = {group}: Guest", f"sre = {other}: Guest")
    sign_in_with(gatebell, provider, slug, ["sre"])
    gatebell.cli("groups", "delete", group, "--yes")
    sign_in_with(gatebell, provider, slug, ["sre"])
    sign_in_with(gatebell, provider, slug, [])
    assert role_of(gatebell, provider, other) is None


@pytest.mark.long
@pytest.mark.both_databases
def test_members_of_the_administrators_group_become_administrators(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    options = ("--creates-accounts", "--administrators-group", "wheel")
    slug = add_provider(gatebell, provider.url, *options)

    def is_admin() -> bool:
        with database_of(gatebell) as session:
            user = session.get_one(User, find_user_id(gatebell, person_of(provider)))
            return user.is_admin

    for groups, expected in ((["staff"], False), (["wheel"], True), (["staff"], False)):
        sign_in_with(gatebell, provider, slug, groups)
        assert is_admin() is expected, groups
    first, second = reversed(
        list_events_about_user(gatebell, person_of(provider), EventKind.USER_CHANGED)
    )
    assert [each.details["administrator"] for each in (first, second)] == [True, False]
    # Administrators who were appointed otherwise keep the role.
    with database_of(gatebell) as session:
        session.get_one(User, find_user_id(gatebell, person_of(provider))).is_admin = True
    sign_in_with(gatebell, provider, slug, ["wheel"])
    sign_in_with(gatebell, provider, slug, ["staff"])
    assert is_admin()


@pytest.mark.long
def test_roles_end_when_their_provider_is_deleted(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    slug = with_roles(gatebell, provider, f"sre = {group}: Developer")
    sign_in_with(gatebell, provider, slug, ["sre"])
    person = person_of(provider)
    gatebell.cli("identity-providers", "delete", find_provider_id(gatebell, slug))
    get_event_about_user(gatebell, person, EventKind.MEMBER_REMOVED)
