"""Accounts that an administrator approves: who waits, who is told, and what becomes of them."""

from collections.abc import Iterator
from functools import partial

import pytest
import requests
from sqlalchemy import delete

from models import Mail, User
from tests.races.test_devices import together
from tests.support.accounts.administration import at_work, id_of, last_event, press, root
from tests.support.accounts.people import Person, database_of, make_user, set_state
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.sign_ups import finish, newcomer, sign_up_link
from tests.support.mail.email_links import messages_to
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words

SIGN_IN = "/users/sign_in"
SETTINGS = {"MAIL_URL": "smtp://127.0.0.1:9", "SIGN_UP": "approval"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def running_service(
    new_service: NewService, request: pytest.FixtureRequest
) -> Iterator[LiveGatebell]:
    """A web server where an administrator approves who signs up; nobody takes its e-mail."""
    with running(new_service(request.param, only="web", **SETTINGS)) as live:
        yield live


@pytest.fixture
def service(running_service: LiveGatebell) -> LiveGatebell:
    """The service with one administrator, where nobody waits and nobody was told anything."""
    root(running_service)
    with database_of(running_service) as session:
        session.query(User).filter_by(state="pending").update({"state": "locked"})
        session.execute(delete(Mail))
    return running_service


def waiting(service: LiveGatebell) -> Person:
    """Somebody who has signed up and waits."""
    person = newcomer()
    assert finish(service, sign_up_link(service, person.email), person).status_code == 302
    return person


def try_to_sign_in(service: LiveGatebell, person: Person, password: str) -> requests.Response:
    browser = service.http()
    page = browser.get(service.url + SIGN_IN)
    return submit(browser, page, form_with(page, "password"), login=person.email, password=password)


def ask_api(service: LiveGatebell, method: str, path: str) -> requests.Response:
    token = make_token(service, root(service)).clear
    headers = {"PRIVATE-TOKEN": token}
    return requests.request(method, f"{service.url}/api/v4{path}", headers=headers, timeout=30)


def state_of(service: LiveGatebell, person: Person) -> str | None:
    with database_of(service) as session:
        user = session.query(User).filter_by(username=person.username).one_or_none()
        return user.state if user else None


@pytest.mark.both_databases
def test_who_signs_up_waits_and_gets_in_once_approved(service: LiveGatebell) -> None:
    person, browser = newcomer(), service.http()
    link = sign_up_link(service, person.email)
    assert "An administrator approves it" in words(service.http().get(link))
    answer = finish(service, link, person, browser=browser)
    assert answer.headers["Location"] == SIGN_IN
    assert "waits for an administrator" in words(browser.get(service.url + SIGN_IN))
    answer = try_to_sign_in(service, person, person.password)
    assert answer.status_code == 403
    assert "An administrator has not approved this account yet." in words(answer)
    answer = try_to_sign_in(service, person, "a wrong one")
    assert answer.status_code == 422
    assert "approved" not in words(answer), "only the right password tells"

    page = at_work(service).get(f"{service.url}/admin/users?group=pending")
    assert person.username in page.text
    assert "Waits for approval" in words(page)
    assert press(service, f"/admin/users/{id_of(service, person)}", "/approve").is_redirect
    assert last_event(service, person.username).kind == "user.approved"
    assert "was approved. Sign in:" in messages_to(service, person.email)[0]
    assert try_to_sign_in(service, person, person.password).status_code == 302


def test_the_api_tells_the_state_and_approves(service: LiveGatebell) -> None:
    person = waiting(service)
    number = id_of(service, person)
    found = ask_api(service, "GET", f"/users/{number}").json()
    assert found["state"] == "blocked_pending_approval"
    assert ask_api(service, "GET", f"/users?blocked=true&search={person.username}").json() == []
    assert ask_api(service, "POST", f"/users/{number}/unblock").status_code == 409
    answer = ask_api(service, "POST", f"/users/{number}/approve")
    assert (answer.status_code, answer.json()) == (201, {"message": "Success"})
    assert ask_api(service, "GET", f"/users/{number}").json()["state"] == "active"
    for verb in ("approve", "reject"):
        assert ask_api(service, "POST", f"/users/{number}/{verb}").status_code == 409
        assert ask_api(service, "POST", f"/users/999999999/{verb}").status_code == 404
        mine = {"PRIVATE-TOKEN": make_token(service, make_user(service)).clear}
        url = f"{service.url}/api/v4/users/{number}/{verb}"
        assert requests.post(url, headers=mine, timeout=30).status_code == 403


@pytest.mark.parametrize("face", ["page", "api", "command"])
def test_who_is_rejected_is_told_and_deleted(service: LiveGatebell, face: str) -> None:
    person = waiting(service)
    number = id_of(service, person)
    if face == "page":
        assert press(service, f"/admin/users/{number}", "/reject").is_redirect
    elif face == "api":
        answer = ask_api(service, "POST", f"/users/{number}/reject")
        assert (answer.status_code, answer.json()) == (200, {"message": "Success"})
    else:
        service.cli("users", "reject", person.username)
    assert state_of(service, person) is None
    assert "was not approved, and is deleted" in messages_to(service, person.email)[0]
    assert last_event(service, f"deleted user {number}").kind == "user.rejected"
    answer = try_to_sign_in(service, person, person.password)
    assert answer.status_code == 422
    assert finish(service, sign_up_link(service, person.email), person).status_code == 302


def test_commands_list_and_approve(service: LiveGatebell) -> None:
    person = waiting(service)
    listed = service.cli("users", "list", "--group", "pending")["users"]
    assert [each["username"] for each in listed] == [person.username]
    assert service.cli("users", "approve", person.username) == {"message": "Success"}
    assert state_of(service, person) == "active"
    done = service.run_cli("users", "approve", person.username)
    assert done.returncode != 0
    assert "does not wait for approval" in done.stdout + done.stderr


def test_administrators_are_told_once_of_a_flood_and_again_after_it(service: LiveGatebell) -> None:
    told = partial(messages_to, service, root(service).email)
    people = [waiting(service) for _ in range(3)]
    assert len(told()) == 1
    assert "/admin/users?group=pending" in told()[0]
    for each in people:
        service.cli("users", "approve", each.username)
    waiting(service)
    assert len(told()) == 2


@pytest.mark.both_databases
def test_of_four_who_sign_up_at_once_administrators_hear_once(service: LiveGatebell) -> None:
    people = [newcomer() for _ in range(4)]
    links = [sign_up_link(service, each.email) for each in people]
    together(
        [partial(finish, service, link, person) for link, person in zip(links, people, strict=True)]
    )
    assert [state_of(service, each) for each in people] == ["pending"] * 4
    assert len(messages_to(service, root(service).email)) == 1


@pytest.mark.both_databases
def test_of_an_approval_and_a_rejection_at_once_one_is_done(service: LiveGatebell) -> None:
    person = waiting(service)
    number = id_of(service, person)
    verbs = ("approve", "reject") * 2
    ask = partial(ask_api, service, "POST")
    answers = together([partial(ask, f"/users/{number}/{verb}") for verb in verbs])
    statuses = sorted(each.status_code for each in answers)
    assert statuses[0] in {200, 201}
    assert set(statuses[1:]) <= {404, 409}
    assert state_of(service, person) in {"active", None}


def test_a_locked_account_is_not_approved(service: LiveGatebell) -> None:
    person = waiting(service)
    set_state(service, person, "locked")
    number = id_of(service, person)
    assert ask_api(service, "POST", f"/users/{number}/approve").status_code == 409
    assert state_of(service, person) == "locked"


def test_who_waits_gets_no_link_to_a_new_password(service: LiveGatebell) -> None:
    person = waiting(service)
    before = messages_to(service, person.email)
    browser = service.http()
    page = browser.get(f"{service.url}/users/password/new")
    submit(browser, page, form_with(page, "login"), login=person.email)
    assert messages_to(service, person.email) == before
