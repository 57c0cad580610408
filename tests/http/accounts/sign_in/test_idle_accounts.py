"""Tests of the deactivation of idle accounts, and of their activation by a sign-in."""

from collections.abc import Callable, Iterator
from datetime import time, timedelta
from functools import partial

import pytest
import requests
from sqlalchemy import update

from domain.audit.events import EventKind
from domain.paging.escalations.policy_steps import TargetKind
from models import (
    EscalationPolicy,
    OnCallOverride,
    OnCallRotation,
    OnCallSchedule,
    OnCallTurn,
    Project,
    User,
)
from tests.conftest import KINDS
from tests.http.accounts.sign_in.test_forgotten_password import choose, links_to
from tests.support.accounts.administration import (
    find_user_id,
    get_administrator_browser,
    get_shared_administrator,
    submit_form_by_ending,
)
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
    set_state,
    sign_in,
    try_to_sign_in,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.database.audit_log import get_event_about_user, list_events_about_user
from tests.support.mail.email_links import list_messages
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
    submit_decision,
)
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.live_settings import changed_settings
from tests.support.sign_in.second_factors import code_of, give_app, give_code, give_password
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words
from web.jobs.retention import deactivate_idle_accounts
from web.settings.environment import parse_settings

SIGN_IN = "/users/sign_in"
SETTINGS = {"MAIL_URL": "smtp://127.0.0.1:9", "DEACTIVATE_AFTER_DAYS": "40"}


@pytest.fixture(scope="module", params=KINDS)
def service(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service that deactivates accounts after 40 days, with an active administrator."""
    with running(new_service(request.param, only="app", **SETTINGS)) as live:
        get_shared_administrator(live)
        yield live


def run_job(service: LiveGatebell, *, days: float = 0) -> dict[str, int]:
    """Run the worker's job, with a clock that is some days ahead."""
    settings = parse_settings(service.environment)
    return deactivate_idle_accounts(settings, clock=lambda: now() + timedelta(days=days))


def set_columns(service: LiveGatebell, person: Person, **values: object) -> None:
    with database_of(service) as session:
        session.execute(update(User).where(User.username == person.username).values(**values))


def idle_user(service: LiveGatebell, *, days: float = 60, admin: bool = False) -> Person:
    """Create a user who has been inactive for some days."""
    person = make_user(service, name="eve", admin=admin)
    set_columns(service, person, created_at=now() - timedelta(days=days))
    return person


def state_of(service: LiveGatebell, person: Person) -> str:
    with database_of(service) as session:
        return session.query(User).filter_by(username=person.username).one().state


def let_time_pass(service: LiveGatebell, person: Person) -> None:
    """Move the time of the message more than a week into the past."""
    past = now() - timedelta(days=7, minutes=1)
    set_columns(service, person, idle_noticed_at=past)


def deactivated(service: LiveGatebell) -> Person:
    person = make_user(service)
    service.cli("users", "deactivate", person.username)
    return person


def api(service: LiveGatebell, token: str, method: str, path: str) -> requests.Response:
    headers = {"PRIVATE-TOKEN": token}
    return requests.request(method, f"{service.url}/api/v4{path}", headers=headers, timeout=30)


@pytest.mark.both_databases
def test_an_idle_user_is_notified_and_deactivated_a_week_later(service: LiveGatebell) -> None:
    person, early = idle_user(service), idle_user(service, days=32)
    token = make_token(service, person).clear
    run_job(service)
    assert state_of(service, person) == "active"
    (message,) = list_messages(service, person.email)
    day = (now() + timedelta(days=7)).date()
    assert f"will be deactivated on {day}" in " ".join(message.split())
    assert list_messages(service, early.email) == []
    run_job(service)
    assert len(list_messages(service, person.email)) == 1, "they are told once"
    assert api(service, token, "GET", "/version").status_code == 200, "that was a use"

    person = idle_user(service)
    run_job(service)
    let_time_pass(service, person)
    run_job(service)
    assert state_of(service, person) == "deactivated"
    event = get_event_about_user(service, person, EventKind.USER_DEACTIVATED)
    assert (event.actor_name, event.details["idle_days"]) == ("", 40)
    assert run_job(service)["deactivated"] == 0


@pytest.mark.long
def test_an_idle_user_is_notified_a_week_before_the_deactivation(service: LiveGatebell) -> None:
    person = idle_user(service, days=33.1)
    run_job(service)
    assert len(list_messages(service, person.email)) == 1
    let_time_pass(service, person)
    run_job(service)
    assert state_of(service, person) == "active", "forty days are not over"


def a_sign_in(service: LiveGatebell, person: Person) -> None:
    sign_in(service, person)


def an_open_browser(service: LiveGatebell, person: Person) -> None:
    open_browser(service, person)
    set_columns(service, person, last_sign_in_at=now() - timedelta(days=60))


def a_token(service: LiveGatebell, person: Person) -> None:
    token = make_token(service, person).clear
    assert api(service, token, "GET", "/version").status_code == 200


def an_application(service: LiveGatebell, person: Person) -> None:
    client = make_application(service, alice(service))
    browser = open_browser(service, person)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, service, client)))[
        "code"
    ]
    assert redeem(service, client, code).status_code == 200
    service.cli("users", "deactivate", person.username)
    service.cli("users", "activate", person.username)
    set_columns(service, person, last_sign_in_at=now() - timedelta(days=60))


def a_schedule(service: LiveGatebell, person: Person) -> int:
    path = make_project(service, alice(service))
    with database_of(service) as session:
        project = session.query(Project).filter_by(path=path).one()
        schedule = OnCallSchedule(
            project_id=project.id, name=person.username, time_zone="UTC", created_at=now()
        )
        session.add(schedule)
        session.flush()
        return schedule.id


def a_rotation(service: LiveGatebell, person: Person, *, ended: bool = False) -> None:
    schedule_id, user_id = a_schedule(service, person), find_user_id(service, person)
    with database_of(service) as session:
        rotation = OnCallRotation(
            schedule_id=schedule_id,
            name="Days",
            layer=1,
            unit="days",
            every=1,
            weekdays=[],
            handover_time=time(9),
            starts_on=now().date(),
            first_turn=0,
            restrictions=[],
            time_zone="UTC",
            valid_from=now() - timedelta(days=90),
            valid_until=now() - timedelta(days=1) if ended else None,
        )
        session.add(rotation)
        session.flush()
        session.add(OnCallTurn(rotation_id=rotation.id, position=0, user_id=user_id))


def an_override(service: LiveGatebell, person: Person) -> None:
    schedule_id, user_id = a_schedule(service, person), find_user_id(service, person)
    begins = now() + timedelta(days=20)
    with database_of(service) as session:
        session.add(
            OnCallOverride(
                schedule_id=schedule_id,
                user_id=user_id,
                starts_at=begins,
                ends_at=begins + timedelta(days=1),
                created_at=now(),
            )
        )


def a_policy(service: LiveGatebell, person: Person) -> None:
    path, user_id = make_project(service, alice(service)), find_user_id(service, person)
    with database_of(service) as session:
        project = session.query(Project).filter_by(path=path).one()
        session.add(
            EscalationPolicy(
                project_id=project.id,
                name="All",
                is_default=True,
                steps=[{"after": 0, "targets": [[TargetKind.USER.value, user_id]]}],
                repeats=0,
                repeat_pause=60,
                created_at=now(),
                updated_at=now(),
            )
        )


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "use", [a_sign_in, an_open_browser, a_token, an_application, a_rotation, an_override, a_policy]
)
def test_activity_prevents_the_deactivation(
    service: LiveGatebell, use: Callable[[LiveGatebell, Person], None]
) -> None:
    person = idle_user(service)
    run_job(service)
    assert len(list_messages(service, person.email)) == 1
    let_time_pass(service, person)
    use(service, person)
    run_job(service)
    assert state_of(service, person) == "active"
    with database_of(service) as session:
        found = session.query(User).filter_by(username=person.username).one()
        assert found.idle_noticed_at is None, "the week begins anew"


def test_a_user_whose_shifts_are_over_can_be_idle(service: LiveGatebell) -> None:
    person = idle_user(service)
    a_rotation(service, person, ended=True)
    run_job(service)
    assert len(list_messages(service, person.email)) == 1


@pytest.mark.parametrize("state", ["locked", "pending", "blocked", "a bot"])
def test_only_active_users_are_deactivated(service: LiveGatebell, state: str) -> None:
    person = idle_user(service)
    if state == "a bot":
        set_columns(service, person, kind="bot")
    else:
        set_state(service, person, state)
    let_time_pass(service, person)
    run_job(service)
    assert state_of(service, person) == ("active" if state == "a bot" else state)
    assert list_messages(service, person.email) == []


@pytest.mark.both_databases
def test_only_a_sign_in_activates_an_account(service: LiveGatebell) -> None:
    person = make_user(service)
    project = make_project(service, person)
    token = make_token(service, person).clear
    client = make_application(service, alice(service))
    browser = open_browser(service, person)
    pair = parse_token_pair(
        redeem(
            service,
            client,
            parse_redirect(submit_decision(browser, open_authorization(browser, service, client)))[
                "code"
            ],
        )
    )
    service.cli("users", "deactivate", person.username)

    assert browser.get(f"{service.url}/-/user_settings/profile").url.startswith(
        service.url + SIGN_IN
    )
    assert api(service, token, "GET", "/user").status_code == 401
    git = f"{service.url}/{project}.git/info/refs?service=git-upload-pack"
    assert requests.get(git, auth=(person.username, token), timeout=30).status_code == 401
    assert refresh(service, client, pair.refresh).json()["error"] == "invalid_grant"
    form = {"grant_type": "password", "username": person.username, "password": person.password}
    answer = service.http().post(f"{service.url}/oauth/token", data=form)
    assert answer.json()["error"] == "invalid_grant"
    assert try_to_sign_in(service, person.username, "a wrong one").status_code == 422
    assert state_of(service, person) == "deactivated"

    sign_in(service, person)
    assert state_of(service, person) == "active"
    assert (
        get_event_about_user(service, person, EventKind.USER_ACTIVATED).actor_name
        == person.username
    )
    assert api(service, token, "GET", "/user").status_code == 200
    assert requests.get(git, auth=(person.username, token), timeout=30).status_code == 200


def test_a_password_without_the_second_factor_does_not_activate_an_account(
    service: LiveGatebell,
) -> None:
    person = make_user(service)
    app = give_app(service, person)
    service.cli("users", "deactivate", person.username)
    browser, page = give_password(service, person)
    assert state_of(service, person) == "deactivated"
    assert give_code(browser, page, code_of(app)).status_code == 302
    assert state_of(service, person) == "active"


@pytest.mark.long
def test_a_deactivated_user_can_reset_the_password(service: LiveGatebell) -> None:
    person = deactivated(service)
    browser = service.http()
    page = browser.get(f"{service.url}/users/password/new")
    submit(browser, page, form_with(page, "login"), login=person.username)
    new = "a phrase that nobody guesses"
    assert choose(service, links_to(service, person.email)[0], new).status_code == 302
    assert state_of(service, person) == "deactivated"
    assert try_to_sign_in(service, person.username, new).status_code == 302
    assert state_of(service, person) == "active"


def test_a_deactivated_user_who_is_locked_stays_locked(service: LiveGatebell) -> None:
    person = deactivated(service)
    service.cli("users", "lock", person.username)
    assert list_events_about_user(service, person, EventKind.USER_LOCKED)
    assert try_to_sign_in(service, person.username, person.password).status_code == 422
    assert state_of(service, person) == "locked"
    done = service.run_cli("users", "activate", person.username)
    assert "is locked. It must be active or deactivated." in done.stdout + done.stderr


@pytest.mark.long
def test_administrators_can_deactivate_and_activate_on_the_page(service: LiveGatebell) -> None:
    person = make_user(service)
    account = f"/admin/users/{find_user_id(service, person)}"
    assert submit_form_by_ending(service, account, "/deactivate").is_redirect
    listed = get_administrator_browser(service).get(f"{service.url}/admin/users?group=deactivated")
    assert person.username in listed.text
    page = get_administrator_browser(service).get(service.url + account)
    assert "Deactivated" in words(page)
    assert submit_form_by_ending(service, account, "/activate").is_redirect
    assert state_of(service, person) == "active"
    kinds = [each.kind for each in list_events_about_user(service, person)]
    assert kinds == [EventKind.USER_ACTIVATED, EventKind.USER_DEACTIVATED]


@pytest.mark.long
def test_the_api_deactivates_and_activates_like_gitlab(service: LiveGatebell) -> None:
    person = make_user(service)
    number, admin = (
        find_user_id(service, person),
        make_token(service, get_shared_administrator(service)).clear,
    )
    ask_api = partial(api, service, admin)
    for verb, state in (("deactivate", "deactivated"), ("activate", "active")):
        for _ in range(2):
            answer = ask_api("POST", f"/users/{number}/{verb}")
            assert (answer.status_code, answer.json()) == (201, True)
        assert ask_api("GET", f"/users/{number}").json()["state"] == state
        mine = make_token(service, alice(service)).clear
        assert api(service, mine, "POST", f"/users/{number}/{verb}").status_code == 403
        assert ask_api("POST", f"/users/999999999/{verb}").status_code == 404
    assert len(list_events_about_user(service, person)) == 2, "what changes nothing is no event"
    service.cli("users", "deactivate", person.username)
    assert ask_api("POST", f"/users/{number}/unblock").status_code == 409
    assert ask_api("GET", f"/users?blocked=true&search={person.username}").json() == []
    set_state(service, person, "locked")
    for verb in ("deactivate", "activate"):
        assert ask_api("POST", f"/users/{number}/{verb}").status_code == 403
    me = find_user_id(service, get_shared_administrator(service))
    assert ask_api("POST", f"/users/{me}/deactivate").status_code == 409


def test_an_activated_user_gets_a_new_week(service: LiveGatebell) -> None:
    person = idle_user(service)
    let_time_pass(service, person)
    service.cli("users", "deactivate", person.username)
    service.cli("users", "activate", person.username)
    run_job(service)
    assert state_of(service, person) == "active"
    assert len(list_messages(service, person.email)) == 1


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_no_account_is_deactivated_without_the_setting(service: LiveGatebell) -> None:
    person = idle_user(service)
    let_time_pass(service, person)
    with changed_settings(service, deactivate_after_days="0"):
        assert run_job(service) == {}
    assert state_of(service, person) == "active"
    for wrong in ("29", "3651", "1.5", "never"):
        done = service.run_cli("settings", "set", "deactivate_after_days", wrong)
        assert "0, or a whole number of days from 30" in done.stdout + done.stderr


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", KINDS)
def test_the_most_recently_active_administrator_is_not_deactivated(
    new_service: NewService, kind: str
) -> None:
    with running(new_service(kind, only="app", DEACTIVATE_AFTER_DAYS="30")) as service:
        with database_of(service) as session:
            session.query(User).update({"created_at": now() - timedelta(days=99)})
        administrators = [idle_user(service, days=days, admin=True) for days in (90, 50, 70)]
        for _ in range(2):
            for each in administrators:
                let_time_pass(service, each)
            run_simultaneously([partial(_answer, service) for _ in range(2)])
        states = [state_of(service, each) for each in administrators]
        assert states == ["deactivated", "active", "deactivated"]
        assert list_messages(service, administrators[0].email) == [], "nobody takes email here"


def _answer(service: LiveGatebell) -> requests.Response:
    run_job(service)
    return requests.Response()
