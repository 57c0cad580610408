"""Emails to users who are removed by a change on the pages of rotations."""

from collections.abc import Iterator

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    settings_of,
    signed_in,
)
from tests.support.accounts.team import give_role
from tests.support.mail.stored_texts import list_stored_mails
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


@pytest.fixture(scope="module")
def mailing(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service that queues email without sending it; the tests read its outbox."""
    with running(new_service("sqlite", only="app", MAIL_URL="smtp://127.0.0.1:9")) as service:
        yield service


def removal_mails_of(service: LiveGatebell, person: Person) -> list[str]:
    """Return the texts of the emails about removal from rotations, without line breaks."""
    with database_of(service) as session:
        mails = list_stored_mails(session, settings_of(service).secret_key)
    return [
        " ".join(each.text.split())
        for each in mails
        if each.recipient == person.email
        and each.subject.startswith("You were removed from a rotation")
    ]


def rotation_of(call: ApiCaller, schedule: int) -> int:
    """Return the id of the only rotation, which changes with each edit."""
    (rotation,) = call.done("GET", f"/on_call/schedules/{schedule}")["rotations"]
    assert isinstance(rotation["id"], int)
    return rotation["id"]


@pytest.mark.long
def test_a_user_removed_from_a_rotation_gets_an_email(mailing: LiveGatebell) -> None:
    olga, alice, bob = (make_user(mailing, name=name) for name in ("olga", "alice", "bob"))
    project = make_project(mailing, olga)
    for each in (alice, bob):
        give_role(mailing, project, each, Role.DEVELOPER)
    call = api_caller(mailing, olga, f"/projects/{project.replace('/', '%2F')}")
    rotation = {"name": "Days", "users": [alice.username, bob.username, olga.username]}
    body = {"name": "Primary", "time_zone": "UTC", "rotations": [rotation]}
    schedule = call.done("POST", "/on_call/schedules", json=body, status=201)["id"]
    browser = signed_in(mailing, olga)
    at = f"{mailing.url}/{project}/-/on_call/schedules/{schedule}"

    page = browser.get(f"{at}/rotations/{rotation_of(call, schedule)}/edit")
    form = form_with(page, "users-0")
    users = {"users-0": alice.username, "users-1": olga.username, "users-2": ""}
    answer = submit(browser, page, form, **users)
    assert answer.status_code == 302, answer.text
    (said,) = removal_mails_of(mailing, bob)
    assert "Olga removed you from the rotation Days." in said
    assert removal_mails_of(mailing, alice) == []

    page = browser.get(at)
    answer = submit(
        browser, page, form_to(page, f"/rotations/{rotation_of(call, schedule)}/delete")
    )
    assert answer.status_code == 302
    (said,) = removal_mails_of(mailing, alice)
    assert "Olga removed you from the rotation Days." in said
    assert len(removal_mails_of(mailing, bob)) == 1
    assert removal_mails_of(mailing, olga) == []
