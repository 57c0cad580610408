"""Tests of searching audit events on the page and in the API, and of exporting the results."""

import csv
import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from domain.accounts.users import get_user
from domain.audit.events import EventKind, EventSource
from models import AuditEvent
from tests.support.accounts.people import (
    Person,
    database_of,
    make_user,
    now,
    signed_in,
    unique,
)
from tests.support.database.audit_log import PAGE, Write
from tests.support.database.audit_log import get_events as get
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.both_databases
@pytest.mark.spec("K1")
def test_the_api_and_the_page_filter_events_alike(
    gatebell: LiveGatebell, admin: Person, write: Write
) -> None:
    bob, project = make_user(gatebell, name="bob"), f"{unique('acme')}/shop"
    source = EventSource(address="2001:db8::5", user_agent="Lynx/2.9")
    joined = write(bob, subject=project, kind=EventKind.MEMBER_ADDED)
    changed = write(
        bob, kind=EventKind.INTEGRATION_CHANGED, actor=None, details={"project": project}
    )
    other = write(bob, source=source)
    with database_of(gatebell) as session:
        bob_id = get_user(bob.username, session=session).id
    browser = signed_in(gatebell, admin)
    everything = {joined, changed, other}

    def found(**query: Any) -> set[str]:
        listed = get(gatebell, admin, per_page=100, **query)
        assert listed.status_code == 200, listed.text
        return {each["details"]["target_details"] for each in listed.json()} & everything

    def shown(**query: str) -> set[str]:
        page = browser.get(gatebell.url + PAGE, params=query)
        assert page.status_code == 200, page.text
        return {subject for subject in everything if f"<bdi>{subject}</bdi>" in page.text}

    assert found(target=project) == shown(target=project) == {joined, changed}
    assert found(target=unique("nothing")) == shown(target=unique("nothing")) == set()
    assert found(ip_address="2001:DB8:0::5") == shown(address="2001:DB8:0::5") == {other}
    assert found(author=bob.username, event_name="member.added") == {joined}
    assert found(author_id=bob_id, event_name="integration.changed") == set()
    assert found(author_id=bob_id, entity_id=bob_id) == {joined, other}
    later = f"{now() + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    assert found(target=project, created_after=later) == set()
    keyset = get(gatebell, admin, target=project, pagination="keyset", per_page=1)
    assert keyset.json()[0]["details"]["target_details"] == changed
    assert 'rel="next"' in keyset.headers["Link"]


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("K1")
def test_all_matching_events_are_exported(
    gatebell: LiveGatebell, admin: Person, write: Write
) -> None:
    bob = make_user(gatebell, name="bob")
    subjects = [write(bob, subject=f"=cmd|' /C calc'!A{number}") for number in range(3)]
    with database_of(gatebell) as session:
        # The service reads events in batches that are smaller than this.
        user = get_user(bob.username, session=session)
        row = {"created_at": now(), "kind": "token.issued", "actor_name": "", "user_id": user.id}
        rows = [row | {"subject": f"t{number}", "details": {}} for number in range(600)]
        session.execute(insert(AuditEvent), rows)
    browser = signed_in(gatebell, admin)

    lines = get(gatebell, admin, "/export.jsonl", author=bob.username)
    read = [json.loads(line) for line in lines.text.splitlines()]
    assert [each["details"]["target_details"] for each in read] == subjects[::-1]
    assert read[0] == get(gatebell, admin, f"/{read[0]['id']}").json()
    page = browser.get(f"{gatebell.url}{PAGE}/export.jsonl", params={"actor": bob.username})
    assert page.text == lines.text

    table = get(gatebell, admin, "/export.csv", author=bob.username)
    assert table.headers["Content-Type"].startswith("text/csv")
    assert ".csv" in table.headers["Content-Disposition"]
    head, *cells = csv.reader(table.text.splitlines())
    column = head.index("target_details")
    # Cells that a spreadsheet would execute are marked as text.
    assert [row[column] for row in cells] == [f"'{subject}" for subject in subjects[::-1]]
    everything = browser.get(f"{gatebell.url}{PAGE}/export.csv", params={"user": bob.username})
    assert len(everything.text.splitlines()) == 1 + 3 + 600

    for path in ("/export.csv", "/export.jsonl"):
        assert get(gatebell, admin, path, ip_address="x").status_code == 400
        wrong = browser.get(gatebell.url + PAGE + path, params={"address": "x"})
        assert wrong.status_code == 400
        assert "Enter an IP address" in wrong.text
