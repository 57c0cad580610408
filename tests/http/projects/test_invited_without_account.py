"""Invitations of users without an account: the link creates the account and the membership."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from domain.audit.events import EventKind
from domain.projects.invitation_actions import INVITATION_SEAL_PURPOSE
from domain.projects.member_types import INVITATION_LIFETIME
from models import AttemptCount, Invitation, Project, User
from tests.http.api.projects.test_invitations_api import invite
from tests.http.api.projects.test_projects_api import path_of, script_of
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    now,
    open_browser,
    set_state,
    sign_in,
)
from tests.support.accounts.sign_ups import (
    create_account_from_link,
    find_invitation_link,
    make_newcomer,
    seal_test_value,
    sign_up_link,
    unseal_test_value,
)
from tests.support.accounts.team import give_role, take_role
from tests.support.database.audit_log import list_events_about_user, list_events_with_subject
from tests.support.mail.email_links import read_stored_address
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.live_settings import changed_settings
from tests.support.wire.html_forms import form_to, form_with, forms_in, submit
from tests.support.wire.page_text import words

SETTINGS = {"MAIL_URL": "smtp://127.0.0.1:9", "INVITATIONS_CREATE_ACCOUNTS": "yes"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def service(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service where invitations create accounts; the tests read its queued email."""
    with running(new_service(request.param, only="app", **SETTINGS)) as live:
        yield live


def invited(service: LiveGatebell, owner: Person, email: str) -> tuple[str, str]:
    """Invite an address to a new project of the owner; return the project's path and the link."""
    project = make_project(service, owner)
    assert invite(script_of(service, owner), project, email) == {"status": "success"}
    return project, find_invitation_link(service, email)


def role_of(service: LiveGatebell, project: str, owner: Person, person: Person) -> int | None:
    script = script_of(service, owner)
    found = script.send_request("GET", f"{path_of(project)}/members?query={person.username}").json()
    return found[0]["access_level"] if found else None


def is_known(service: LiveGatebell, person: Person) -> bool:
    with database_of(service) as session:
        return session.query(User).filter_by(email=person.email).count() > 0


@pytest.mark.long
@pytest.mark.both_databases
def test_the_link_creates_an_account_and_a_membership_in_one_step(service: LiveGatebell) -> None:
    person, owner, browser = make_newcomer(), make_user(service), service.http()
    project, link = invited(service, owner, person.email)
    page = service.http().get(link)
    assert page.headers["Cache-Control"] == "no-store"
    assert f"{owner.username} invited you to {project} with the Developer role" in words(page)
    assert service.http().head(link).status_code == 200
    assert not is_known(service, person)
    answer = create_account_from_link(service, link, person, browser=browser)
    assert answer.headers["Location"] == f"/{project}"
    shown = words(browser.get(f"{service.url}/{project}"))
    assert f"You are a member of {project}." in shown
    assert read_stored_address(service, person) == (person.email, True)
    assert role_of(service, project, owner, person) == 30
    assert {each.kind for each in list_events_about_user(service, person)} >= {
        EventKind.USER_CREATED,
        EventKind.MEMBER_ADDED,
        EventKind.SIGNED_IN,
    }
    accepted = list_events_with_subject(service, project)
    assert person.username in {
        each.actor_name for each in accepted if each.kind == "invitation.accepted"
    }
    sign_in(service, person)


def test_the_link_of_an_accepted_invitation_leads_the_member_to_the_project(
    service: LiveGatebell,
) -> None:
    person, owner, browser = make_newcomer(), make_user(service), service.http()
    project, link = invited(service, owner, person.email)
    create_account_from_link(service, link, person, browser=browser)
    again = browser.get(link)
    assert again.url == f"{service.url}/{project}"
    assert f"You are a member of {project}." in words(again)
    assert service.http().get(link).status_code == 404
    stranger = sign_in(service, make_user(service))
    assert stranger.get(link).status_code == 404
    # After the role is removed, the link shows again why it no longer works.
    take_role(service, project, person)
    assert browser.get(link).status_code == 404


@pytest.mark.long
@pytest.mark.both_databases
def test_only_one_of_four_concurrent_forms_creates_an_account(service: LiveGatebell) -> None:
    owner, email = make_user(service), make_newcomer().email
    _, link = invited(service, owner, email)
    browsers = [service.http() for _ in range(4)]
    pages = [browser.get(link) for browser in browsers]
    answers = run_simultaneously(
        [
            partial(
                submit,
                browser,
                page,
                form_with(page, "new_password"),
                username=make_newcomer().username,
                new_password="four people at one door",
                repeat_password="four people at one door",
            )
            for browser, page in zip(browsers, pages, strict=True)
        ]
    )
    # After the first form, the other forms get the message that the invitation is not pending.
    codes = {each.status_code for each in answers}
    assert {302} <= codes <= {302, 404}
    with database_of(service) as session:
        assert session.query(User).filter_by(email=email).count() == 1


@pytest.mark.long
def test_a_rejected_form_does_not_use_up_the_invitation(service: LiveGatebell) -> None:
    person, owner = make_newcomer(), make_user(service)
    project, link = invited(service, owner, person.email)
    answer = create_account_from_link(service, link, person, username=owner.username)
    assert answer.status_code == 422
    assert "This username is taken." in words(answer)
    assert "invited you to" in words(answer)
    assert not is_known(service, person)
    assert create_account_from_link(service, link, person).status_code == 302
    assert role_of(service, project, owner, person) == 30


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A pending invitation that a test changes."""

    service: LiveGatebell
    owner: Person
    email: str
    project: str
    link: str

    def signed(self, *, email: str = "", **how: Any) -> str:
        """Return the link with another address, age or key."""
        place, _, text = self.link.rpartition("/")
        number, known, *namespace = unseal_test_value(text, INVITATION_SEAL_PURPOSE)
        content = [number, email or known, *namespace]
        return f"{place}/{seal_test_value(content, INVITATION_SEAL_PURPOSE, **how)}"

    def update(self, **values: Any) -> None:
        """Change the row of the invitation."""
        mine = update(Invitation).where(Invitation.email == self.email)
        with database_of(self.service) as session:
            session.execute(mine.values(**values))

    def of_maintainer(self) -> Person:
        """Make a new maintainer the sender of the invitation."""
        person = make_user(self.service)
        give_role(self.service, self.project, person, Role.MAINTAINER)
        self.update(invited_by=find_user_id(self.service, person))
        return person


def revoke(sent: Sent) -> None:
    url = f"{path_of(sent.project)}/invitations/{sent.email}"
    assert script_of(sent.service, sent.owner).send_request("DELETE", url).status_code == 204


def delete_project(sent: Sent) -> None:
    with database_of(sent.service) as session:
        session.query(Project).filter_by(path=sent.project).update({"deleted_at": now()})


def archive(sent: Sent) -> None:
    assert (
        script_of(sent.service, sent.owner)
        .send_request("POST", f"{path_of(sent.project)}/archive")
        .ok
    )


A_MONTH = INVITATION_LIFETIME + timedelta(minutes=1)
GONE = "This invitation is no longer pending"
NO_ROLE = "its sender can no longer assign this role. Ask another owner or maintainer of"
ENDS: dict[str, tuple[Callable[[Sent], object], str]] = {
    "its time is over": (lambda sent: sent.update(created_at=now() - A_MONTH), GONE),
    "it was revoked": (revoke, GONE),
    "it was used": (
        lambda sent: create_account_from_link(sent.service, sent.link, make_newcomer()),
        GONE,
    ),
    "the project is deleted": (delete_project, GONE),
    "the project is archived": (archive, "is archived, so members cannot be added"),
    "its sender has a lower role": (
        lambda sent: give_role(sent.service, sent.project, sent.of_maintainer(), Role.DEVELOPER),
        NO_ROLE,
    ),
    "its sender is locked": (
        lambda sent: set_state(sent.service, sent.of_maintainer(), "locked"),
        NO_ROLE,
    ),
}


@pytest.fixture
def sent(service: LiveGatebell) -> Sent:
    """An invitation of a user without an account."""
    owner, email = make_user(service), make_newcomer().email
    project, link = invited(service, owner, email)
    return Sent(service=service, owner=owner, email=email, project=project, link=link)


@pytest.mark.parametrize("end", ENDS)
def test_an_ended_invitation_shows_a_remedy_and_creates_no_account(sent: Sent, end: str) -> None:
    person, browser = make_newcomer(), sent.service.http()
    page = browser.get(sent.link)
    act, why = ENDS[end]
    act(sent)
    values = {"new_password": person.password, "repeat_password": person.password}
    form = form_with(page, "new_password")
    for answer in (
        sent.service.http().get(sent.link),
        submit(browser, page, form, username=person.username, **values),
    ):
        assert answer.status_code in {403, 404}
        assert why in words(answer)
    with database_of(sent.service) as session:
        assert session.query(User).filter_by(username=person.username).count() == 0


def test_an_old_or_forged_link_shows_a_remedy(sent: Sent) -> None:
    month = INVITATION_LIFETIME.total_seconds()
    assert sent.service.http().get(sent.signed(age=month - 60)).status_code == 200
    for link, why in (
        (sent.signed(age=month + 60), "Ask for a new invitation."),
        (sent.signed(key="another key of forty characters, or more"), "its link is incomplete"),
        (sent.signed(email=make_newcomer().email), GONE),
        (sent.link[:-2], "its link is incomplete"),
    ):
        answer = sent.service.http().get(link)
        assert answer.status_code == 404
        assert why in words(answer)


@pytest.mark.long
def test_an_invitation_for_another_account_offers_to_switch(service: LiveGatebell) -> None:
    person, owner = make_newcomer(), make_user(service)
    project, link = invited(service, owner, person.email)
    browser = open_browser(service, alice(service))
    page = browser.get(link)
    assert "an account with a different email address" in words(page)
    assert "Accept invitation" not in page.text
    switch = next(each for each in forms_in(page.text) if "next=" in each.action)
    left = submit(browser, page, switch)
    assert left.headers["Location"].startswith("/users/sign_in?next=/-/invitations/")
    back = browser.get(service.url + left.headers["Location"])
    assert back.status_code == 200
    assert (
        create_account_from_link(service, link, person, browser=browser).headers["Location"]
        == f"/{project}"
    )


@pytest.mark.long
def test_a_user_with_an_account_signs_in_to_accept(service: LiveGatebell) -> None:
    person, owner, browser = make_user(service), make_user(service), service.http()
    project, link = invited(service, owner, person.email)
    page = browser.get(link)
    assert "/users/sign_in?next=" in page.url
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=person.username, password=person.password)
    page = browser.get(service.url + answer.headers["Location"])
    answer = submit(browser, page, form_to(page, link.rpartition("/")[2]))
    assert answer.headers["Location"] == f"/{project}"
    assert role_of(service, project, owner, person) == 30


@pytest.mark.one_database("sqlite")
def test_without_the_setting_the_page_refers_to_administrators(service: LiveGatebell) -> None:
    person, owner = make_newcomer(), make_user(service)
    project, link = invited(service, owner, person.email)
    browser = service.http()
    page = browser.get(link)
    values = {"new_password": person.password, "repeat_password": person.password}
    with changed_settings(service, invitations_create_accounts="off"):
        assert "Ask an administrator to create one" in words(browser.get(link))
        members = open_browser(service, owner).get(f"{service.url}/{project}/-/settings/members")
        assert "People without an account cannot join until" in words(members)
        form = form_with(page, "new_password")
        answer = submit(browser, page, form, username=person.username, **values)
        assert answer.status_code == 403
        assert not is_known(service, person)
    with changed_settings(service, invitations_create_accounts="off", sign_up="approval"):
        assert "Sign up with this address" in words(browser.get(link))
    with changed_settings(service, invitations_create_accounts="off", sign_up="open"):
        # A user who signs up instead can still accept the invitation.
        create_account_from_link(
            service, sign_up_link(service, person.email), person, browser=browser
        )
        page = browser.get(link)
        answer = submit(browser, page, form_to(page, link.rpartition("/")[2]))
        assert answer.headers["Location"] == f"/{project}"
        other = make_newcomer()
        _, link = invited(service, owner, other.email)
        assert create_account_from_link(service, link, other).status_code == 302


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_attempts_with_taken_user_names_are_limited(service: LiveGatebell) -> None:
    person, owner = make_newcomer(), make_user(service)
    _, link = invited(service, owner, person.email)
    with changed_settings(service, sign_in_attempts_per_address="2"):
        with database_of(service) as session:
            session.query(AttemptCount).delete()
        tries = [
            create_account_from_link(service, link, person, username=owner.username)
            for _ in range(3)
        ]
    assert [each.status_code for each in tries] == [422, 422, 429]
    assert isinstance(tries[0], requests.Response)
    assert int(tries[-1].headers["Retry-After"]) > 0
    assert "invited you to" in words(tries[-1])


def test_the_members_page_invites_many_people_at_once(service: LiveGatebell) -> None:
    owner, colleague = make_user(service), make_user(service)
    other, project = make_project(service, owner), make_project(service, owner)
    give_role(service, other, colleague, Role.DEVELOPER)
    browser = open_browser(service, owner)
    page = browser.get(f"{service.url}/{project}/-/settings/members")
    assert f'<option value="{colleague.username}">' in page.text
    people = [make_newcomer().email for _ in range(3)]
    form = form_to(page, "/invitations")
    addresses = f"{people[0]}\n{people[1]}, nobody\n{people[2]}"
    answer = submit(browser, page, form, email=addresses, invited_role="20")
    assert answer.status_code == 422
    assert f"3 people invited to {project}." in words(answer)
    assert form_to(answer, "/invitations").value("email") == "nobody"
    assert '"nobody" is not a valid email address' in words(answer)
    assert "nobody: " not in words(answer)
    pending = (
        script_of(service, owner).send_request("GET", f"{path_of(project)}/invitations").json()
    )
    assert {each["invite_email"]: each["access_level"] for each in pending} == dict.fromkeys(
        people, 20
    )
    repeated = make_newcomer().email
    twice = f"{repeated} {repeated.upper()} {repeated}"
    again = submit(browser, answer, form_to(answer, "/invitations"), email=twice)
    assert again.status_code == 302
    assert f"1 person invited to {project}." in words(browser.get(page.url))


def test_the_page_with_rejected_invitations_leads_back_to_the_list(service: LiveGatebell) -> None:
    owner = make_user(service)
    path = f"/{make_project(service, owner)}/-/settings/members"
    browser = open_browser(service, owner)
    page = browser.get(f"{service.url}{path}")
    fields = {**dict(form_to(page, "/invitations").fields), "email": "nobody"}
    answer = browser.post(f"{service.url}{path}/invitations?page=2", data=fields)
    assert answer.status_code == 422
    assert f'href="{path}?page=1"' in answer.text
    reopened = browser.get(answer.url)
    assert (reopened.status_code, reopened.url) == (200, f"{service.url}{path}?page=2")
