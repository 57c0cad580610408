"""The actions of users on alerts, and the activity that shows them."""

import json
import re

import pytest
import requests
from sqlalchemy import select

from domain.access.roles import Role
from domain.accounts.users import get_user
from domain.alerts.handling.activity import ActivityEntryKind, add_activity_entry
from domain.audit.events import EventActor
from models import AuditEvent
from tests.support.accounts.people import alice, database_of, now, signed_in
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.integration_pages import words
from tests.support.alerts.senders import Endpoint, connect, item, resolved, webhook
from tests.support.database.stored import list_stored_alerts, resolve_for_silence
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1)) \u202e"


def page_of(browser: requests.Session, endpoint: Endpoint, query: str = "") -> requests.Response:
    page = browser.get(f"{endpoint.service}/{endpoint.project}/-/alerts/1{query}")
    assert page.status_code == 200, page.text
    return page


def do(
    browser: requests.Session, endpoint: Endpoint, what: str, **values: str
) -> requests.Response:
    """Submit a form of an alert's page and return the page that follows."""
    page = page_of(browser, endpoint)
    answer = submit(browser, page, form_to(page, f"/alerts/1/{what}"), **values)
    assert answer.status_code == 302, answer.text
    return browser.get(endpoint.service + answer.headers["Location"])


@pytest.mark.long
@pytest.mark.both_databases
def test_the_activity_shows_the_user_of_each_action(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    browser = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    me = person_for(gatebell, Role.DEVELOPER).username
    other = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, endpoint.project, other, Role.MAINTAINER)
    do(browser, endpoint, "status", status="acknowledged")
    page = do(browser, endpoint, "assignee", assignee=me).text
    assert f'<option value="{me}" selected>' in page
    listed = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts").text
    assert f"assigned to </span>@{me}<" in listed
    do(browser, endpoint, "assignee", assignee=me)  # The alert is already assigned to this user.
    do(browser, endpoint, "assignee", assignee=other.username)
    do(browser, endpoint, "assignee", assignee="-")
    do(browser, endpoint, "notes", text="Grew the volume,\r\nsee https://wiki.example/db-1.")
    page = do(browser, endpoint, "status", status="triggered").text
    activity = page[page.index('id="timeline"') : page.index('id="overview"')]
    lines = re.findall(rf"<strong>@{me}</strong> (.*?) <span", activity)
    assert lines == [
        "reopened it",
        "wrote",
        "removed the assignee",
        f"assigned it to @{other.username}",
        "assigned it to themselves",
        "acknowledged it",
    ]
    assert "Grew the volume,\nsee " in activity
    assert '<a href="https://wiki.example/db-1" rel="noopener noreferrer nofollow"' in activity


@pytest.mark.long
@pytest.mark.both_databases
def test_alerts_can_be_assigned_only_to_members_who_can_see_them(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    guest = person_for(gatebell, Role.GUEST)
    give_role(gatebell, endpoint.project, guest, Role.GUEST)
    stranger = person_for(gatebell, None)
    browser = signed_in(gatebell, alice(gatebell))
    for who in (guest.username, stranger.username, "nobody-has-this-name", "", "a\x00b", "' --"):
        page = do(browser, endpoint, "assignee", assignee=who)
        assert "The assignee must be a member of the project" in page.text, who
        assert '<option value="-">' in page.text
        assert "assigned it" not in page.text


@pytest.mark.long
@pytest.mark.both_databases
def test_a_note_is_escaped_and_links_only_web_addresses(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    browser = signed_in(gatebell, alice(gatebell))
    for text, told in (("  \n ", "Enter a note."), ("x" * 10_001, "at most 10,000 char")):
        refused = do(browser, endpoint, "notes", text=text).text
        assert told in refused
        assert '<li class="note">' not in refused
    links = (
        'javascript:alert(1) https://a.example/"onclick="x http://[ https:// (https://b.example)'
    )
    page = do(browser, endpoint, "notes", text=f"{EVIL} {links} {{{{7*7}}}} a\x00b").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "{{7*7}}" in page
    (note,) = re.findall(r'<li class="note">.*?</li>', page, re.DOTALL)
    assert re.findall(r'href="([^"]*)"', note) == ["https://a.example/", "https://b.example"]


@pytest.mark.long
@pytest.mark.both_databases
def test_the_activity_is_paginated(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    browser = signed_in(gatebell, alice(gatebell))
    for number in range(21):
        write_note(gatebell, endpoint, f"note {number:02}")
    first = page_of(browser, endpoint).text
    assert "note 20" in first
    assert "note 00" not in first
    found = re.search(r"\?cursor=([^&#]+)#timeline", first)
    assert found is not None
    assert "note 00" in page_of(browser, endpoint, f"?cursor={found[1]}").text
    oldest = page_of(browser, endpoint, "?sort=asc").text
    assert oldest.index("opened the alert") < oldest.index("note 00") < oldest.index("note 18")
    assert "note 19" not in oldest


def write_note(gatebell: LiveGatebell, endpoint: Endpoint, text: str) -> None:
    """Add a note to the project's first alert."""
    me = alice(gatebell).username
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    with database_of(gatebell) as session:
        by = EventActor(id=get_user(me, session=session).id, name=me)
        add_activity_entry(
            alert.id, ActivityEntryKind.NOTE, text, by=by, session=session, now=now()
        )


@pytest.mark.both_databases
@pytest.mark.spec("J5", "I8", "I16", "I17")
def test_each_report_is_a_line_of_the_timeline(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("other"), item("a")))
    endpoint.post(webhook(item("a")))
    endpoint.post(webhook(resolved("a")))
    endpoint.post(webhook(resolved("a")))
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/2").text
    reports = page[page.index('id="timeline"') :]
    assert re.findall(r'<li class="report ([\w-]+)">', reports) == [
        "unchanged", "resolved", "joined", "opened",
    ]  # fmt: skip
    assert "item 2</a>" in reports
    (delivery, *_) = re.findall(r'href="([^"]*/deliveries/\d+)"', reports)
    assert browser.get(gatebell.url + delivery).status_code == 200


@pytest.mark.long
@pytest.mark.both_databases
def test_the_timeline_joins_reports_and_is_paginated(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for _ in range(3):
        endpoint.post(webhook(*(item("a") for _ in range(90))))
    browser = signed_in(gatebell, alice(gatebell))
    query, joined = "", []
    while True:
        page = page_of(browser, endpoint, query).text
        joined += [int(number) for number in re.findall(r"<summary>(\d+) reports from", page)]
        found = re.search(r"\?cursor=([\w.]+)#timeline", page)
        if found is None:
            break
        query = f"?cursor={found[1]}"
    assert joined == [200, 69]
    assert "opened the alert" in page
    url = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    for forged in ("1", "r1", "a1_1", "r1_1.r1_1", "z1", "%00", f"r1_{'9' * 30}", "r-1_1", "a"):
        assert browser.get(f"{url}?cursor={forged}").status_code == 400
    assert browser.get(f"{url}?sort=best").status_code == 400


@pytest.mark.spec("I8", "I9", "J5")
@pytest.mark.parametrize(
    ("kind", "body", "sentence", "fields"),
    [
        ("http", {"fingerprint": ["a", 1]}, "the same fingerprint", ["fingerprint.0"]),
        ("http", {"title": "t", "hosts": "h"}, "start_time, end_time, hosts", ["title"]),
        (
            "prometheus",
            item("x"),
            "fingerprint from the sender",
            ["fingerprint", "labels.alertname"],
        ),
        ("prometheus", item("x", fingerprint=""), "the same labels", ["labels.alertname"]),
        (
            "prometheus",
            item("x", fingerprint="", labels={}, annotations={"title": "t"}),
            "are grouped by their title",
            ["title"],
        ),
    ],
)
def test_the_page_explains_why_reports_were_grouped(
    gatebell: LiveGatebell, kind: str, body: dict[str, object], sentence: str, fields: list[str]
) -> None:
    endpoint = connect(gatebell, kind=kind)
    endpoint.post(webhook(body) if kind == "prometheus" else json.dumps(body).encode())
    page = page_of(signed_in(gatebell, alice(gatebell)), endpoint).text
    why = page[page.index("Why were these grouped?") : page.index("All fields")]
    assert sentence in why
    for name in fields:
        assert f"<bdi>{name}</bdi>" in why
    assert "hosts</bdi>" not in why


@pytest.mark.long
@pytest.mark.both_databases
def test_a_maintainer_deletes_an_alert_and_its_next_report_opens_another(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Disk full", fingerprint="disk")
    url = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    developer = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    assert "Delete alert" not in developer.get(url).text
    maintainer = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    page = maintainer.get(url)
    assert submit(maintainer, page, form_to(page, "/1/delete")).status_code == 302
    assert maintainer.get(url).status_code == 404
    assert endpoint.accepted(title="Disk full", fingerprint="disk")["iid"] == 2
    with database_of(gatebell) as session:
        told = session.scalars(
            select(AuditEvent).where(AuditEvent.kind == "alert.deleted").order_by(AuditEvent.id)
        ).all()[-1]
        assert (told.subject, told.details["iid"]) == ("Disk full", 1)


def test_an_automatically_resolved_alert_opens_again_with_the_same_start(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    report = {"title": "Disk", "fingerprint": "disk", "start_time": "2026-11-21T07:52:39Z"}
    endpoint.accepted(**report)
    resolve_for_silence(gatebell, endpoint.id, minutes=5)
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    assert "It was resolved by itself after 5 minutes without a report" in words(page.text)
    assert endpoint.accepted(**report)["iid"] == 2
