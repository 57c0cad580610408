"""Tests of invitations by email, from the API request to the link in the message."""

import re
from datetime import timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from domain.projects.member_types import INVITATION_LIFETIME
from models import Invitation
from tests.http.api.projects.test_members_api import in_days, user_id
from tests.http.api.projects.test_projects_api import made, path_of, script_of
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    now,
    open_browser,
    signed_in,
    unique,
)
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.sign_ups import make_newcomer
from tests.support.accounts.team import give_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.mail.stored_texts import list_texts
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture(scope="module")
def mailing(new_service: NewService) -> Any:
    """A service that queues emails; no worker sends them, and the tests read the outbox."""
    with running(new_service("postgres", only="app", MAIL_URL="smtp://127.0.0.1:9")) as service:
        yield service


def message_to(service: LiveGatebell, email: str) -> str:
    return next(reversed(list_texts(service, email)), "")


def link_to(service: LiveGatebell, email: str) -> str:
    found = re.search(r"http\S+/-/invitations/\S+", message_to(service, email))
    assert found is not None
    return found[0]


def accept(service: LiveGatebell, person: Person, link: str) -> requests.Response:
    browser = signed_in(service, person)
    page = browser.get(link)
    if page.status_code != 200:
        return page
    return submit(browser, page, form_to(page, link.rpartition("/")[2]))


def invite(script: Api, project: str, email: str, **more: Any) -> dict[str, Any]:
    body = {"email": email, "access_level": 30, **more}
    return made(script.send_request("POST", f"{path_of(project)}/invitations", json=body))


@pytest.mark.long
def test_an_invited_user_becomes_a_member_by_the_link(mailing: LiveGatebell) -> None:
    owner, bob = make_user(mailing), make_user(mailing, name="bob")
    project, script = make_project(mailing, owner), script_of(mailing, owner)
    url = f"{path_of(project)}/invitations"
    assert invite(script, project, bob.email, expires_at=in_days(20)) == {"status": "success"}
    again = invite(script, project, bob.email.upper())
    assert again["status"] == "error"
    assert "already been invited" in next(iter(again["message"].values()))
    (pending,) = script.send_request("GET", url).json()
    assert (pending["invite_email"], pending["access_level"]) == (bob.email, 30)
    changed = made(script.send_request("PUT", f"{url}/{bob.email}", json={"access_level": 20}), 200)
    assert changed == {**pending, "access_level": 20}
    members = signed_in(mailing, owner).get(f"{mailing.url}/{project}/-/settings/members")
    assert "Pending invitations" in members.text
    link = link_to(mailing, bob.email)
    assert "invited you" in message_to(mailing, bob.email)
    stranger = open_browser(mailing, make_user(mailing))
    token = form_with(stranger.get(mailing.url), "csrf_token").value("csrf_token")
    refused = stranger.post(link, data={"csrf_token": token})
    assert (refused.status_code, "not your email address" in refused.text) == (403, True)
    assert accept(mailing, bob, link).status_code == 302
    member = made(
        script.send_request("GET", f"{path_of(project)}/members/{user_id(mailing, bob)}"), 200
    )
    assert (member["access_level"], member["expires_at"]) == (20, in_days(20))
    assert script.send_request("GET", url).json() == []
    assert signed_in(mailing, bob).get(link).url == f"{mailing.url}/{project}"
    kinds = [each.kind for each in list_events_with_subject(mailing, project)][::-1]
    assert kinds == [
        *("invitation.sent", "invitation.changed", "invitation.accepted", "member.added"),
    ]


def test_an_invitation_is_revoked_on_the_members_page(mailing: LiveGatebell) -> None:
    owner, bob = make_user(mailing), make_user(mailing)
    project, script = make_project(mailing, owner), script_of(mailing, owner)
    invite(script, project, bob.email)
    link = link_to(mailing, bob.email)
    browser = signed_in(mailing, owner)
    members = browser.get(f"{mailing.url}/{project}/-/settings/members")
    revoked = submit(browser, members, form_to(members, "revoke"))
    assert revoked.status_code == 302
    page = browser.get(mailing.url + revoked.headers["Location"])
    assert f"The invitation to {bob.email} was revoked." in page.text
    assert "Pending invitations" not in page.text
    assert script.send_request("GET", f"{path_of(project)}/invitations").json() == []
    assert signed_in(mailing, bob).get(link).status_code == 404
    # The same form, sent again, changes nothing.
    again = submit(browser, members, form_to(members, "revoke"))
    assert "is pending" in browser.get(mailing.url + again.headers["Location"]).text
    kinds = [each.kind for each in list_events_with_subject(mailing, project)]
    assert kinds == ["invitation.revoked", "invitation.sent"]


@pytest.mark.long
def test_an_invited_member_keeps_the_role(mailing: LiveGatebell) -> None:
    owner, bob = make_user(mailing), make_user(mailing)
    project, script = make_project(mailing, owner), script_of(mailing, owner)
    give_role(mailing, project, bob, Role.MAINTAINER)
    invite(script, project, bob.email)
    assert accept(mailing, bob, link_to(mailing, bob.email)).status_code == 302
    member = script.send_request(
        "GET", f"{path_of(project)}/members/{user_id(mailing, bob)}"
    ).json()
    assert member["access_level"] == 40


@pytest.mark.long
def test_an_invitation_ends_if_it_is_revoked_expired_or_no_longer_allowed(
    mailing: LiveGatebell,
) -> None:
    owner, maintainer, bob = (make_user(mailing) for _ in range(3))
    project = make_project(mailing, owner)
    give_role(mailing, project, maintainer, Role.MAINTAINER)
    script = script_of(mailing, maintainer)
    invite(script, project, bob.email)
    link = link_to(mailing, bob.email)
    give_role(mailing, project, maintainer, Role.DEVELOPER)
    void = accept(mailing, bob, link)
    assert (void.status_code, "no longer valid" in void.text) == (403, True)
    give_role(mailing, project, maintainer, Role.MAINTAINER)
    old = now() - INVITATION_LIFETIME - timedelta(minutes=1)
    with database_of(mailing) as session:
        mine = Invitation.email == bob.email
        session.execute(update(Invitation).where(mine).values(created_at=old))
    assert accept(mailing, bob, link).status_code == 404
    assert script.send_request("GET", f"{path_of(project)}/invitations").json() == []
    invite(script, project, bob.email)
    assert mailing.cli("prune")["invitations"] >= 0
    url = f"{path_of(project)}/invitations/{bob.email}"
    assert script.send_request("DELETE", url).status_code == 204
    assert script.send_request("DELETE", url).status_code == 404
    assert accept(mailing, bob, link_to(mailing, bob.email)).status_code == 404
    assert accept(mailing, bob, f"{mailing.url}/-/invitations/forged").status_code == 404


@pytest.mark.long
def test_users_cannot_invite_with_a_higher_role_than_their_own(mailing: LiveGatebell) -> None:
    maintainer = make_user(mailing)
    project = make_project(mailing, make_user(mailing))
    give_role(mailing, project, maintainer, Role.MAINTAINER)
    script, url = script_of(mailing, maintainer), f"{path_of(project)}/invitations"
    body = {"email": f"{unique('x')}@example.org", "access_level": 50}
    assert script.send_request("POST", url, json=body).status_code == 400
    found = invite(script, project, "no address")
    assert set(found["message"]) == {"no", "address"}


def test_repeated_invitations_of_a_recipient_are_limited(mailing: LiveGatebell) -> None:
    owner, stranger = make_user(mailing), f"{unique('stranger')}@people.example"
    projects = [make_project(mailing, owner) for _ in range(2)]
    script, problems = script_of(mailing, owner), []
    for number in range(8):
        project = projects[number % 2]
        problems.append(invite(script, project, stranger).get("message", {}).get(stranger))
        script.send_request("DELETE", f"{path_of(project)}/invitations/{stranger}")
    assert problems[:5] == [None] * 5
    assert {str(each).partition(".")[0] for each in problems[5:]} == {
        "Too many invitations were sent to this recipient"
    }
    assert all("Try again in" in str(each) for each in problems[5:])
    assert len(list_texts(mailing, stranger)) == 5
    assert script.send_request("GET", f"{path_of(projects[1])}/invitations").json() == []
    others = invite(script, projects[0], f"{unique('other')}@people.example")
    assert others == {"status": "success"}


def test_an_invitation_without_a_mail_server_returns_an_error(gatebell: LiveGatebell) -> None:
    owner, bob = make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, owner)
    found = invite(script_of(gatebell, owner), project, bob.email)
    assert found["status"] == "error"
    assert "MAIL_URL" in found["message"][bob.email]
    # Administrators can see every address, so the user is added immediately.
    assert (
        invite(script_of(gatebell, get_shared_administrator(gatebell)), project, bob.email)[
            "status"
        ]
        == "success"
    )
    assert script_of(gatebell, bob).send_request("GET", path_of(project)).status_code == 200


@pytest.mark.parametrize(
    "written",
    [
        "{0}; {1}",
        "{0};{1};",
        "Nina Park <{0}>; Omar Diaz <{1}>",
        '"Park, Nina" <{0}>, "Diaz; Omar" <{1}>',
        "<{0}>\n<{1}>\n",
        "{0} {1}, {0}",
    ],
)
def test_addresses_are_copied_from_an_email_program(mailing: LiveGatebell, written: str) -> None:
    owner = make_user(mailing)
    project, addresses = make_project(mailing, owner), [make_newcomer().email for _ in range(2)]
    script = script_of(mailing, owner)
    answer = script.send_request(
        "POST",
        f"{path_of(project)}/invitations",
        json={"email": written.format(*addresses), "access_level": 30},
    )
    assert answer.json() == {"status": "success"}
    listed = script.send_request("GET", f"{path_of(project)}/invitations").json()
    assert {each["invite_email"] for each in listed} == set(addresses)
