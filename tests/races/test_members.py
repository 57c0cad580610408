"""Tests that a group keeps an owner when its owners remove each other concurrently."""

from functools import partial

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.memberships import all_members
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    now,
    signed_in,
)
from tests.support.accounts.team import find_member_id, give_role
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

ROUNDS = 4


def owners_of(gatebell: LiveGatebell, group: str) -> list[str]:
    with database_of(gatebell) as session:
        members = all_members(
            get_namespace(group, session=session),
            session=session,
            today=now().date(),
        )
    return [member.username for member in members if member.role == Role.OWNER]


def action_on(
    gatebell: LiveGatebell, group: str, who: Person, whom: Person, ending: str, **values: str
) -> "partial[requests.Response]":
    """Return a function that submits the form to change or remove a member."""
    browser = signed_in(gatebell, who)
    page = browser.get(f"{gatebell.url}/groups/{group}/-/members")
    form = form_to(page, f"/{find_member_id(gatebell, group, whom)}/{ending}")
    return partial(submit, browser, page, form, **values)


def test_two_owners_who_remove_each_other_leave_one(gatebell: LiveGatebell) -> None:
    cain, abel = make_user(gatebell, name="cain"), make_user(gatebell, name="abel")
    for _ in range(ROUNDS):
        group = make_project(gatebell, cain).partition("/")[0]
        give_role(gatebell, group, abel, Role.OWNER)
        answers = run_simultaneously(
            [
                action_on(gatebell, group, cain, abel, "remove"),
                action_on(gatebell, group, abel, cain, "remove"),
            ]
        )
        assert len(owners_of(gatebell, group)) == 1
        # The loser is not a member any more, or was still a member when the request started.
        assert sorted(answer.status_code for answer in answers) in ([302, 403], [302, 404])


@pytest.mark.long
def test_two_owners_who_leave_or_step_down_concurrently_leave_one(gatebell: LiveGatebell) -> None:
    cain, abel = make_user(gatebell, name="cain"), make_user(gatebell, name="abel")
    for _ in range(ROUNDS):
        group = make_project(gatebell, cain).partition("/")[0]
        give_role(gatebell, group, abel, Role.OWNER)
        answers = run_simultaneously(
            [
                action_on(gatebell, group, cain, cain, "remove"),
                action_on(gatebell, group, abel, abel, "role", role="40"),
            ]
        )
        assert len(owners_of(gatebell, group)) == 1
        assert sorted(answer.status_code for answer in answers) == [302, 422]
