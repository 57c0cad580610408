"""The pages of rotations tell those whom a change takes out."""

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
from tests.support.mail.stored_texts import stored_mails
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


@pytest.fixture(scope="module")
def mailing(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service that sends e-mail; nobody takes it, and the outbox is read."""
    with running(new_service("sqlite", only="app", MAIL_URL="smtp://127.0.0.1:9")) as service:
        yield service


def said_to(service: LiveGatebell, person: Person) -> list[str]:
    """Return what a user was told about rotations, without line breaks."""
    with database_of(service) as session:
        mails = stored_mails(session, settings_of(service).secret_key)
    return [
        " ".join(each.text.split())
        for each in mails
        if each.recipient == person.email
        and each.subject.startswith("You were removed from a rotation")
    ]


def rotation_of(call: ApiCaller, schedule: int) -> int:
    """Return the number of the only rotation, which a change replaces."""
    (rotation,) = call.done("GET", f"/on_call/schedules/{schedule}")["rotations"]
    assert isinstance(rotation["id"], int)
    return rotation["id"]


@pytest.mark.long
def test_who_is_taken_out_on_a_page_is_told(mailing: LiveGatebell) -> None:
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
    (said,) = said_to(mailing, bob)
    assert "Olga removed you from the rotation Days." in said
    assert said_to(mailing, alice) == []

    page = browser.get(at)
    answer = submit(
        browser, page, form_to(page, f"/rotations/{rotation_of(call, schedule)}/delete")
    )
    assert answer.status_code == 302
    (said,) = said_to(mailing, alice)
    assert "Olga removed you from the rotation Days." in said
    assert len(said_to(mailing, bob)) == 1
    assert said_to(mailing, olga) == []
