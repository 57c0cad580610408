"""Tests of the texts of pages: the reason, the alert's details, links, and the next user."""

import json
from datetime import timedelta
from typing import Any

import pytest

from domain.paging.notifications.recipients import PagingPreferences, QuietHours, store_preferences
from models import Delivery, Member, User
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated

_WEBHOOK = {
    "version": "4",
    "status": "firing",
    "truncatedAlerts": 0,
    "groupKey": "{}",
    "receiver": "gatebell",
    "groupLabels": {},
    "commonLabels": {"cluster": "eu-1"},
    "commonAnnotations": {},
    "externalURL": "http://alertmanager.example",
}


def received(shop: Escalated, body: Any, body_format: str = "http") -> int:
    """Store a body as a delivery of the project, and return its id."""
    raw = json.dumps(body).encode()
    with shop.session() as session:
        row = Delivery(
            project_id=shop.project_id,
            format=body_format,
            received_at=shop.now,
            status_code=200,
            sender="192.0.2.1",
            size=len(raw),
            body=raw,
        )
        session.add(row)
        session.flush()
        return row.id


def texts_to(mailbox: Mailbox, name: str) -> list[str]:
    pairs = zip(mailbox.recipients, mailbox.messages, strict=True)
    return [
        mail.text.replace("\r\n", "\n") for to, mail in pairs if to == [f"{name}@pager.example"]
    ]


def subjects_to(mailbox: Mailbox, name: str) -> list[str]:
    pairs = zip(mailbox.recipients, mailbox.messages, strict=True)
    return [str(mail["Subject"]) for to, mail in pairs if to == [f"{name}@pager.example"]]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_a_page_contains_the_details_and_links_of_the_alert(
    shop: Escalated, mailbox: Mailbox
) -> None:
    item = {
        "status": "firing",
        "labels": {
            "alertname": "DiskFull",
            "severity": "critical",
            "namespace": "checkout",
            "team": "storage",
            "instance": "db-1",
        },
        "annotations": {
            "runbook_url": "https://wiki.example/runbooks/disk",
            "dashboard": "https://grafana.example/d/disk",
        },
        "startsAt": "2026-03-01T19:59:00Z",
        "generatorURL": "http://prometheus.example/graph?g0.expr=disk",
        "panelURL": "javascript:alert(1)",
    }
    delivery = received(shop, {**_WEBHOOK, "alerts": [item]}, "prometheus")
    shop.policy("0s user:alice", "5m user:bob", name="Night")
    shop.alert("DiskFull", delivery_id=delivery, hosts="db-1")
    shop.pass_time(seconds=1)
    (text,) = texts_to(mailbox, "alice")
    assert "Runbook: https://wiki.example/runbooks/disk\n" in text
    assert "Dashboard: https://grafana.example/d/disk\n" in text
    assert "Source: http://prometheus.example/graph?g0.expr=disk\n" in text
    assert "Labels: cluster=eu-1, namespace=checkout, team=storage\n" in text
    assert "javascript:" not in text
    assert "Paged by: Night, step 1 of 2\n" in text
    assert "Next: @bob at 2026-03-01 20:05 UTC\n" in text
    assert "Unanswered" not in text


@pytest.mark.long
@pytest.mark.spec("J1")
def test_the_second_user_s_page_explains_the_escalation_and_its_duration(
    shop: Escalated, mailbox: Mailbox
) -> None:
    with shop.session() as session:
        session.get_one(User, shop.bob.id).time_zone = "Europe/Berlin"
    shop.schedule("Primary", shop.bob, shop.alice)
    shop.policy("0s user:alice", "7m schedule:Primary", name="Night", repeats=1)
    shop.alert("Disk full")
    shop.pass_time(seconds=1)
    (first,) = texts_to(mailbox, "alice")
    assert "Next: @bob (Primary) at 2026-03-01 20:07 UTC\n" in first
    shop.pass_time(minutes=7)
    (text,) = texts_to(mailbox, "bob")
    assert "Paged by: Night, step 2 of 2, on call in Primary\n" in text
    assert "Unanswered: for 7 minutes\n" in text
    # The time is in the recipient's time zone.
    assert "Next: @alice at 2026-03-01 21:12 +01:00\n" in text
    assert subjects_to(mailbox, "bob") == ["[critical] Disk full (acme/shop #1)"]
    for minutes in (5, 7):
        shop.pass_time(minutes=minutes)
    assert subjects_to(mailbox, "alice")[1:] == [
        "[critical] Unanswered for 12 minutes: Disk full (acme/shop #1)"
    ]
    assert "Paged by: Night, step 1 of 2, round 2\n" in texts_to(mailbox, "alice")[1]
    last = texts_to(mailbox, "bob")[1]
    assert "Unanswered: for 19 minutes\nNext: nobody\n" in last


@pytest.mark.long
def test_times_are_in_the_quiet_hours_time_zone_if_the_profile_has_none(
    shop: Escalated, mailbox: Mailbox
) -> None:
    hours = QuietHours(time_zone="Asia/Tokyo", starts=60, ends=120, lets_critical_through=True)
    with shop.session() as session:
        wanted = PagingPreferences(quiet_hours=hours)
        store_preferences(shop.alice.id, wanted, session=session, now=shop.now)
    shop.policy("0s user:alice")
    shop.alert()
    shop.pass_time(seconds=1)
    (text,) = texts_to(mailbox, "alice")
    assert "Started: 2026-03-02 05:00 +09:00\n" in text


@pytest.mark.long
def test_an_alert_without_a_title_is_named_by_its_first_fields(
    shop: Escalated, mailbox: Mailbox
) -> None:
    body = {"event": {"kind": "backup\r\nBcc: x@evil.example", "node": None}, "code": 17, "ok": ""}
    shop.policy("0s user:alice")
    shop.alert("New: Alert", delivery_id=received(shop, body))
    shop.pass_time(seconds=1)
    # A custom title is kept, even if several alerts have the same title.
    shop.alert("Backup failed", delivery_id=received(shop, body))
    shop.alert("New: Alert", delivery_id=received(shop, {}))
    shop.pass_time(seconds=40)
    first, second = mailbox.messages
    assert str(first["Subject"]).strip() == (
        "[critical] event.kind=backup Bcc: x@evil.example, code=17 (acme/shop #1)"
    )
    assert first["Bcc"] is None
    assert str(second["Subject"]) == ("[critical] 2 alerts in acme/shop: Backup failed and others")
    assert "[critical] New: Alert (acme/shop #3)\n" in second.text.replace("\r\n", "\n")


@pytest.mark.long
def test_a_digest_names_the_projects_of_its_alerts(shop: Escalated, mailbox: Mailbox) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    shop.alert("Disk full")
    shop.pass_time(seconds=1)
    other = shop.project("acme/api")
    with shop.session() as session:
        row = Member(user_id=shop.alice.id, project_id=other, role=30, created_at=shop.now)
        session.add(row)
    ids = [shop.alert("Slow", severity=2), shop.alert("Down", severity=1, project_id=other)]
    shop.page(ids, shop.alice)
    shop.pass_time(seconds=40)
    assert subjects_to(mailbox, "alice")[1] == (
        "[high] 2 alerts in acme/api and 1 other project: Down and others"
    )
    text = texts_to(mailbox, "alice")[1]
    assert "[high] Down (acme/api #3)\n" in text
    assert "[medium] Slow (acme/shop #2)\nNight, step 1 of 2; next: @bob at " in text
    assert "Acknowledge all 2, or some of them: http://localhost/-/acknowledge/" in text


@pytest.mark.long
def test_only_the_title_of_a_long_subject_is_cut(shop: Escalated, mailbox: Mailbox) -> None:
    shop.policy("0s user:alice")
    shop.alert("x\u202e" + "y" * 198)
    shop.pass_time(seconds=1)
    (subject,) = subjects_to(mailbox, "alice")
    assert len(subject) == 150
    assert subject.startswith("[critical] xyyy")
    assert subject.endswith("yyy… (acme/shop #1)")


@pytest.mark.long
def test_a_page_is_sent_if_its_report_cannot_be_parsed(shop: Escalated, mailbox: Mailbox) -> None:
    shop.policy("0s user:alice")
    delivery = received(shop, {"runbook": "x" * 5_000, "dashboard": ["http://x"], "a": "b"})
    with shop.session() as session:
        session.get_one(Delivery, delivery).mapping = {"title": 1}
    shop.alert("Disk full", delivery_id=delivery)
    shop.pass_time(seconds=1)
    (text,) = texts_to(mailbox, "alice")
    assert "Disk full" in text
    assert "Acknowledge it: " in text


def test_a_page_without_a_policy_has_no_reason(shop: Escalated, mailbox: Mailbox) -> None:
    shop.page([shop.alert("Disk full", started_at=shop.now - timedelta(hours=2))], shop.alice)
    shop.pass_time(seconds=3)
    (text,) = texts_to(mailbox, "alice")
    assert "Paged by" not in text
    assert "Started: 2026-03-01 18:00 UTC" in text
