"""Tests of reading the audit log: in the API, on the admin page, and in a user's own activity."""

from datetime import UTC, datetime, timedelta

import pytest
import requests
from sqlalchemy import delete, select

from domain.accounts.users import get_user
from domain.audit.events import EventKind
from models import AuditEvent, SignIn
from tests.support.accounts.administration import get_administrator_browser
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    now,
    open_browser,
    signed_in,
    unique,
)
from tests.support.database.audit_log import PAGE, Write, get_event_about_user
from tests.support.database.audit_log import get_events as get
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, forms_in, submit

pytestmark = pytest.mark.one_database("postgres")

ACTIVITY = "/-/user_settings/activity"
NASTY = "<script>alert(1)</script> {{7*7}} \N{RIGHT-TO-LEFT OVERRIDE}x"


@pytest.mark.both_databases
def test_the_api_returns_an_event_in_the_gitlab_format(
    gatebell: LiveGatebell, admin: Person, write: Write
) -> None:
    bob = make_user(gatebell, name="bob")
    at = datetime(2026, 5, 31, 12, 30, 15, 250_000, tzinfo=UTC)
    subject = write(bob, at=at, details={"token_id": 7})

    (seen,) = get(
        gatebell, admin, created_after="2026-05-31", created_before="2026-06-01", entity_type="User"
    ).json()

    assert seen["entity_type"] == "User"
    assert seen["author_id"] == seen["entity_id"]
    assert seen["created_at"] == "2026-05-31T12:30:15.250Z"
    assert seen["event_name"] == "token.revoked"
    details = seen["details"]
    assert details["token_id"] == 7
    assert (details["author_name"], details["entity_path"]) == (bob.username, bob.username)
    assert details["target_details"] == subject
    assert details["custom_message"] == "Token revoked"
    assert details["ip_address"] == "192.0.2.1"
    assert get(gatebell, admin, f"/{seen['id']}").json() == seen
    forget_before_today(gatebell)


def forget_before_today(gatebell: LiveGatebell) -> None:
    with database_of(gatebell) as session:
        session.execute(delete(AuditEvent).where(AuditEvent.created_at < now() - timedelta(days=1)))


@pytest.mark.both_databases
@pytest.mark.spec("K1")
def test_the_api_lists_events_by_page_and_by_account(
    gatebell: LiveGatebell, admin: Person, write: Write
) -> None:
    bob = make_user(gatebell, name="bob")
    subjects = [write(bob) for _ in range(3)]
    with database_of(gatebell) as session:
        bob_id = get_user(bob.username, session=session).id

    first = get(gatebell, admin, entity_type="User", entity_id=bob_id, per_page=2)
    second = get(gatebell, admin, entity_type="User", entity_id=bob_id, per_page=2, page=2)

    shown = [each["details"]["target_details"] for each in (*first.json(), *second.json())]
    assert shown == subjects[::-1]
    assert (first.headers["X-Total"], first.headers["X-Next-Page"]) == ("3", "2")
    assert 'rel="next"' in first.headers["Link"]


def test_the_api_rejects_invalid_parameters(gatebell: LiveGatebell, admin: Person) -> None:
    for name, value in (
        ("created_after", "yesterday"),
        ("created_before", "2026-13-01"),
        ("created_after", "\x00"),
        ("page", "-1"),
        ("per_page", "x"),
        ("entity_type", "Robot"),
        ("entity_id", "1e9"),
        ("entity_id", "9" * 30),
        ("event_name", "no.such"),
        ("ip_address", "localhost"),
        ("target", "x" * 256),
        ("author", "\x00"),
    ):
        answer = get(gatebell, admin, **{name: value})
        assert answer.status_code == 400, (name, value, answer.text)
        assert name in answer.json()["error"], (name, value)


@pytest.mark.both_databases
def test_an_unknown_event_is_not_found(gatebell: LiveGatebell, admin: Person) -> None:
    for path in ("/0", "/999999999999", f"/{'9' * 40}", "/x"):
        assert get(gatebell, admin, path).status_code == 404, path


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("K1")
def test_the_page_filters_events(gatebell: LiveGatebell, admin: Person, write: Write) -> None:
    bob, carol = make_user(gatebell, name="bob"), make_user(gatebell, name="carol")
    today, day = now(), "%Y-%m-%d"
    old = write(bob, at=today - timedelta(days=400), kind=EventKind.SECRET_RENEWED)
    new = write(bob)
    hers = write(carol, actor=None)
    browser = signed_in(gatebell, admin)

    def shown(**query: str) -> list[str]:
        page = browser.get(gatebell.url + PAGE, params=query)
        assert page.status_code == 200, page.text
        return [subject for subject in (old, new, hers) if subject in page.text]

    assert shown(user=bob.username.upper()) == [old, new]
    assert shown(actor=bob.username) == [old, new]
    assert shown(actor=carol.username) == []
    assert shown(user=carol.username) == [hers]
    assert shown(user=bob.username, kind="application.secret_renewed") == [old]
    limit = f"{today - timedelta(days=399):{day}}"
    assert shown(user=bob.username, since=limit) == [new]
    assert shown(user=bob.username, until=limit) == [old]
    assert shown(user=bob.username, until=f"{today - timedelta(days=400):{day}}") == [old]
    assert shown(user=bob.username, until=f"{today - timedelta(days=401):{day}}") == []
    assert shown(user=bob.username, until="9999-12-31", since="0001-01-01") == [old, new]
    assert shown(user=unique("nobody")) == []
    forget_before_today(gatebell)


def test_the_page_describes_events_in_words(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    gatebell.cli("integrations", "create", project, "--type", "http", "--name", "Nagios")
    browser = get_administrator_browser(gatebell)
    page = browser.get(f"{gatebell.url}{PAGE}?kind=integration.changed&target={project}")
    assert "Integration created: " in page.text
    assert "change: " not in page.text.partition("<main")[2]
    page = browser.get(f"{gatebell.url}{PAGE}?kind=sign_in.succeeded")
    assert "methods: <bdi>password</bdi>" in page.text
    assert "methods: <bdi>pwd" not in page.text


@pytest.mark.both_databases
def test_the_page_rejects_invalid_filters(gatebell: LiveGatebell, admin: Person) -> None:
    browser = signed_in(gatebell, admin)
    for query in (
        {"since": "31.5.2026"},
        {"until": "2026-02-30"},
        {"kind": "no.such"},
        {"user": "x" * 256},
        {"actor": "\x00"},
        {"before": "1 OR 1=1"},
        {"after": "9" * 30},
    ):
        answer = browser.get(gatebell.url + PAGE, params=query)
        assert answer.status_code == 400, (query, answer.text)
        assert "Traceback" not in answer.text, query


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("K1")
def test_the_page_has_next_and_previous_pages(
    gatebell: LiveGatebell, admin: Person, write: Write
) -> None:
    bob = make_user(gatebell, name="bob")
    subjects = [write(bob) for _ in range(45)]
    browser = signed_in(gatebell, admin)

    def shown(page: requests.Response) -> list[str]:
        return [subject for subject in subjects if f"<bdi>{subject}</bdi>" in page.text]

    def follow(page: requests.Response, relation: str) -> requests.Response:
        end = page.text.index(f'" rel="{relation}"')
        address = page.text[page.text.rindex('href="', 0, end) + 6 : end]
        return browser.get(gatebell.url + address.replace("&amp;", "&"))

    first = browser.get(gatebell.url + PAGE, params={"user": bob.username})
    second = follow(first, "next")
    third = follow(second, "next")

    assert [len(shown(page)) for page in (first, second, third)] == [20, 20, 5]
    assert 'rel="next"' not in third.text
    assert shown(follow(third, "prev")) == shown(second)
    assert 'rel="prev"' not in follow(second, "prev").text
    assert "Audit events" in first.text


@pytest.mark.spec("K1")
def test_the_activity_page_shows_only_the_users_own_events(
    gatebell: LiveGatebell, write: Write
) -> None:
    bob, carol = make_user(gatebell, name="bob"), make_user(gatebell, name="carol")
    mine, hers = write(bob), write(carol)
    by_others = write(bob, actor=None, details={"by": "command"})

    page = signed_in(gatebell, bob).get(gatebell.url + ACTIVITY)

    assert mine in page.text
    assert by_others in page.text
    assert "an operator (command line)" in page.text
    assert hers not in page.text
    assert gatebell.http().get(gatebell.url + ACTIVITY, allow_redirects=False).status_code == 302


@pytest.mark.both_databases
def test_values_in_events_are_escaped(gatebell: LiveGatebell, admin: Person, write: Write) -> None:
    bob = make_user(gatebell, name="bob")
    write(
        bob, subject=f"a\x00b\ud800 {NASTY}", details={"note": NASTY, "scopes": ["api", "openid"]}
    )
    for browser, address in (
        (signed_in(gatebell, bob), gatebell.url + ACTIVITY),
        (signed_in(gatebell, admin), f"{gatebell.url}{PAGE}?user={bob.username}"),
    ):
        text = browser.get(address).text
        assert "<script>alert" not in text
        assert "{{7*7}}" in text
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
        assert "scopes: <bdi>api, openid</bdi>" in text


@pytest.mark.spec("K1")
def test_a_user_can_sign_out_another_browser(gatebell: LiveGatebell) -> None:
    bob = make_user(gatebell, name="bob")
    other, mine = open_browser(gatebell, bob), open_browser(gatebell, bob)

    page = mine.get(gatebell.url + ACTIVITY)
    assert "You are signed in with 2 browsers" in page.text
    assert page.text.count("This browser") == 1
    answer = submit(mine, page, form_to(page, "/end"))

    assert answer.status_code == 302
    profile = f"{gatebell.url}/-/user_settings/profile"
    assert other.get(profile, allow_redirects=False).status_code == 302
    page = mine.get(gatebell.url + ACTIVITY)
    assert "You are signed in with 1 browser" in page.text
    # Users sign out their current browser with “Sign out”.
    assert not [form for form in forms_in(page.text) if form.action.endswith(("/end", "_others"))]
    event = get_event_about_user(gatebell, bob, EventKind.SIGNED_OUT)
    assert event.details["browser_address"] == "127.0.0.1"


@pytest.mark.spec("K1")
def test_a_user_can_sign_out_all_other_browsers(gatebell: LiveGatebell) -> None:
    bob = make_user(gatebell, name="bob")
    others, mine = [open_browser(gatebell, bob) for _ in range(2)], open_browser(gatebell, bob)
    page = mine.get(gatebell.url + ACTIVITY)
    for _ in range(2):  # A repeated request does no harm.
        submit(mine, page, form_to(page, "/end_others"))

    profile = f"{gatebell.url}/-/user_settings/profile"
    assert mine.get(profile, allow_redirects=False).status_code == 200
    for other in others:
        assert other.get(profile, allow_redirects=False).status_code == 302
    assert get_event_about_user(gatebell, bob, EventKind.SIGNED_OUT).details == {"browsers": 2}


def test_users_cannot_end_the_sign_ins_of_others(gatebell: LiveGatebell) -> None:
    victim, bob = make_user(gatebell, name="victim"), make_user(gatebell, name="bob")
    hers, mine = open_browser(gatebell, victim), open_browser(gatebell, bob)
    open_browser(gatebell, bob)
    with database_of(gatebell) as session:
        user = get_user(victim.username, session=session)
        sign_in_id = session.scalar(select(SignIn.id).where(SignIn.user_id == user.id))

    page = mine.get(gatebell.url + ACTIVITY)
    form = form_to(page, "/end")
    for number in (sign_in_id, 0, 10**18, 10**30):
        form.action = f"{ACTIVITY}/sign_ins/{number}/end"
        assert submit(mine, page, form).status_code == 404
    without_token = mine.post(f"{gatebell.url}{ACTIVITY}/sign_ins/end_others")

    assert without_token.status_code == 400
    assert hers.get(f"{gatebell.url}{ACTIVITY}", allow_redirects=False).status_code == 200


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("K1")
def test_events_are_deleted_after_the_retention_period(
    gatebell: LiveGatebell, write: Write
) -> None:
    bob = make_user(gatebell, name="bob")
    old, new = (
        write(bob, at=now() - timedelta(days=366)),
        write(bob, at=now() - timedelta(days=364)),
    )
    gatebell.cli("prune")
    page = signed_in(gatebell, bob).get(gatebell.url + ACTIVITY)
    assert old not in page.text
    assert new in page.text
    gatebell.cli("settings", "set", "audit_event_keep_days", "30")
    gatebell.cli("prune")
    assert new not in signed_in(gatebell, bob).get(gatebell.url + ACTIVITY).text
    gatebell.cli("settings", "set", "audit_event_keep_days", "365")
    assert gatebell.cli("audit", "verify")["intact"]
