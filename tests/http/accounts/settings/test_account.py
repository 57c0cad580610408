"""Tests of a user's own settings: profile, password, and the time zone of pages and messages."""

import pytest
import requests
from sqlalchemy import select

from domain.access.roles import Role
from domain.audit.events import EventKind
from models import Silence, User
from tests.http.api.projects.test_projects_api import script_of
from tests.support.accounts.other_access import give_access
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_user,
    now,
    open_browser,
    sign_in,
    signed_in,
    unique,
)
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.database.audit_log import get_event_about_user
from tests.support.oauth.oauth_wire import machine, open_authorization, refresh
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import is_signed_in
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

NEW = "a new password, much better"


def change_password(
    gatebell: LiveGatebell, browser: requests.Session, current: str, new: str, again: str = ""
) -> requests.Response:
    page = browser.get(f"{gatebell.url}/-/user_settings/security")
    form = form_with(page, "new_password")
    return submit(
        browser,
        page,
        form,
        current_password=current,
        new_password=new,
        repeat_password=again or new,
    )


def change_profile(
    gatebell: LiveGatebell,
    browser: requests.Session,
    name: str,
    email: str,
    current_password: str = "",
) -> requests.Response:
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    return submit(
        browser,
        page,
        form_with(page, "email"),
        name=name,
        email=email,
        current_password=current_password,
    )


@pytest.mark.long
@pytest.mark.advisory("CVE-2023-44400")
def test_a_new_password_works_immediately_and_signs_out_all_other_browsers(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    here, elsewhere = open_browser(gatebell, charlie), open_browser(gatebell, charlie)
    assert change_password(gatebell, here, charlie.password, NEW).status_code == 302
    assert is_signed_in(gatebell, here)
    assert not is_signed_in(gatebell, elsewhere)
    changed = Person(username=charlie.username, email=charlie.email, password=NEW)
    assert is_signed_in(gatebell, sign_in(gatebell, changed))
    with pytest.raises(AssertionError):
        sign_in(gatebell, charlie)


@pytest.mark.long
def test_the_current_password_must_be_known(gatebell: LiveGatebell, charlie: Person) -> None:
    here, elsewhere = open_browser(gatebell, charlie), open_browser(gatebell, charlie)
    answer = change_password(gatebell, here, "not the current one", NEW)
    assert answer.status_code == 422
    assert "The current password is incorrect" in answer.text
    assert is_signed_in(gatebell, elsewhere)
    assert is_signed_in(gatebell, sign_in(gatebell, charlie))


@pytest.mark.long
@pytest.mark.both_databases
def test_the_current_password_cannot_be_guessed_in_an_unattended_browser(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    for number in range(10):
        wrong = change_password(gatebell, browser, f"wrong {number}", NEW)
        assert wrong.status_code == 422
    answer = change_password(gatebell, browser, charlie.password, NEW)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.long
def test_the_right_password_does_not_count_if_another_field_is_invalid(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser, email = open_browser(gatebell, charlie), f"{unique('new')}@people.example"
    for _ in range(11):
        refused = change_profile(gatebell, browser, "Charlie\a", email, charlie.password)
        assert refused.status_code == 422
        assert "without control characters" in refused.text
    done = change_profile(gatebell, browser, "Charlie", email, charlie.password)
    assert done.status_code == 302


@pytest.mark.long
def test_a_weak_password_is_rejected(gatebell: LiveGatebell) -> None:
    person = alice(gatebell)
    browser = signed_in(gatebell, person)
    for new in ("", "x" * 11, "x" * 100_000, f"{person.username}-is-my-name"):
        answer = change_password(gatebell, browser, person.password, new)
        assert answer.status_code == 422, new
        assert person.password not in answer.text, new


def test_a_new_password_with_a_different_repetition_is_rejected(gatebell: LiveGatebell) -> None:
    person = alice(gatebell)
    browser = signed_in(gatebell, person)
    answer = change_password(gatebell, browser, person.password, NEW, NEW + "x")
    assert answer.status_code == 422
    assert "do not match" in answer.text


def test_a_password_can_contain_any_character(gatebell: LiveGatebell, charlie: Person) -> None:
    new = "päßwörter sind schön 🔔 nul\x00inside is odd but fine"
    answer = change_password(gatebell, open_browser(gatebell, charlie), charlie.password, new)
    assert answer.status_code == 302, answer.text
    changed = Person(username=charlie.username, email=charlie.email, password=new)
    assert is_signed_in(gatebell, sign_in(gatebell, changed))


def test_a_changed_name_is_shown_with_the_email_in_the_api(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    answer = change_profile(gatebell, browser, "Čarli <b>", charlie.email)
    assert answer.status_code == 302
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    assert form_with(page, "email").value("name") == "Čarli <b>"
    assert "Čarli <b>" not in page.text
    options = ("--name", "n", "--scopes", "read_user")
    token = gatebell.cli("tokens", "create", charlie.username, *options)["token"]
    headers = {"PRIVATE-TOKEN": token}
    user = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers).json()
    assert (user["name"], user["email"]) == ("Čarli <b>", charlie.email)


@pytest.mark.long
def test_a_change_of_the_email_address_needs_the_password(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser, email = open_browser(gatebell, charlie), f"{unique('new')}@people.example"
    for proof in ("", "wrong"):
        answer = change_profile(gatebell, browser, "Charlie", email, proof)
        assert answer.status_code == 422, proof
        assert "Enter your current password" in answer.text, proof
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    assert form_with(page, "email").value("email") == charlie.email
    assert change_profile(gatebell, browser, "Carl", charlie.email).status_code == 302
    assert change_profile(gatebell, browser, "Carl", email, charlie.password).status_code == 302
    event = get_event_about_user(gatebell, charlie, EventKind.EMAIL_CHANGE_REQUESTED)
    assert email not in repr(event)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("boxes", "left"),
    [
        ({}, (True, True)),
        ({"end_applications": "y"}, (False, True)),
        ({"end_applications": "y", "revoke_tokens": "y"}, (False, False)),
    ],
)
def test_a_password_change_ends_other_access_if_requested(
    gatebell: LiveGatebell, charlie: Person, boxes: dict[str, str], left: tuple[bool, bool]
) -> None:
    access = give_access(gatebell, charlie)
    browser = open_browser(gatebell, charlie)
    page = browser.get(f"{gatebell.url}/-/user_settings/security")
    passwords = {"current_password": charlie.password, "new_password": NEW, "repeat_password": NEW}
    answer = submit(browser, page, form_with(page, "new_password"), **passwords, **boxes)
    assert answer.status_code == 302
    assert access.is_open(gatebell) == left
    again = refresh(gatebell, access.client, access.pair.refresh)
    assert again.status_code == (200 if left[0] else 400)
    # Applications of signed-out users show the consent page before they get access again.
    assert (open_authorization(browser, gatebell, access.client).status_code == 302) == left[0]


@pytest.mark.long
def test_an_invalid_profile_is_rejected_on_the_page(gatebell: LiveGatebell) -> None:
    garbage = (
        ("", "a@b.example"),
        ("x" * 300, "a@b.example"),
        ("Charlie", ""),
        ("Charlie", "nonsense"),
        ("Charlie", "a\x00@b.example"),
        ("Charlie", "a@b.example\r\nBcc: c@d.example"),
        ("Charlie", "x" * 300 + "@b.example"),
    )
    browser = signed_in(gatebell, alice(gatebell))
    for name, email in garbage:
        answer = change_profile(gatebell, browser, name, email)
        assert answer.status_code == 422, (name, email, answer.text)


def test_a_visitor_has_to_sign_in_first(gatebell: LiveGatebell) -> None:
    for page in ("profile", "security"):
        address = f"{gatebell.url}/-/user_settings/{page}"
        answer = gatebell.http().get(address, allow_redirects=False)
        assert answer.status_code == 302, page
        assert answer.headers["Location"].startswith("/users/sign_in?next="), page


# Time zones of users


@pytest.mark.long
@pytest.mark.both_databases
def test_pages_show_times_in_the_time_zone_of_the_profile(gatebell: LiveGatebell) -> None:
    endpoint, person = connect(gatebell), make_user(gatebell)
    give_role(gatebell, endpoint.project, person, Role.DEVELOPER)
    endpoint.accepted(title="x", start_time="2026-01-31T23:30:00Z")
    browser = signed_in(gatebell, person)
    alert = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    assert "2026-01-31 23:30:00 UTC" in browser.get(alert).text
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    form = form_with(page, "time_zone")
    assert form.value("time_zone") == "UTC"
    assert submit(browser, page, form, time_zone="Asia/Kathmandu").status_code == 302
    assert "2026-02-01 05:15:00 +05:45" in browser.get(alert).text
    # Other users still see their own time zones.
    assert "2026-01-31 23:30:00 UTC" in signed_in(gatebell, alice(gatebell)).get(alert).text


@pytest.mark.parametrize(
    ("zone", "problem"),
    [
        ("", "Choose a time zone"),
        ("Mars/Olympus", "Choose a time zone"),
        ("localtime", "Choose a time zone"),
        ("x" * 5_000, "A time zone may have at most 64 characters."),
    ],
)
def test_an_invalid_time_zone_is_rejected(gatebell: LiveGatebell, zone: str, problem: str) -> None:
    browser = signed_in(gatebell, make_user(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    answer = submit(browser, page, form_with(page, "time_zone"), time_zone=zone)
    assert answer.status_code == 422
    assert problem in answer.text


def test_a_name_change_by_token_keeps_the_time_zone(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    gatebell.cli("users", "change", person.username, "--time-zone", "europe/berlin")
    assert script_of(gatebell, person).send_request("PUT", "/user", json={"name": "New"}).ok
    with database_of(gatebell) as session:
        found = session.scalar(select(User).where(User.username == person.username))
        assert found is not None
        assert (found.name, found.time_zone) == ("New", "Europe/Berlin")


@pytest.mark.long
def test_a_silence_starts_at_the_time_in_its_authors_time_zone(gatebell: LiveGatebell) -> None:
    endpoint, person = connect(gatebell), make_user(gatebell)
    give_role(gatebell, endpoint.project, person, Role.DEVELOPER)
    gatebell.cli("users", "change", person.username, "--time-zone", "Asia/Kathmandu")
    browser = signed_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/silences/new")
    assert "Start (Asia/Kathmandu)" in page.text
    values = {"matchers": "service=x", "starts_at": f"{now().year + 1}-01-31T09:00"}
    answer = submit(browser, page, form_with(page, "starts_at"), duration="1h", **values)
    shown = browser.get(gatebell.url + answer.headers["Location"]).text
    assert f"{now().year + 1}-01-31 09:00:00 +05:45" in shown
    with database_of(gatebell) as session:
        silence = session.scalars(select(Silence).order_by(Silence.id.desc())).first()
        assert silence is not None
        assert (silence.starts_at.hour, silence.starts_at.minute) == (3, 15)
