"""SQLite, batches on Postgres and single alerts on Postgres are stored by separate modules.

These tests apply the same random deliveries to all three and compare the contents of the tables.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Table, select

from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.handling.status import StatusChange, change_alert_statuses
from domain.alerts.listing.search import find_matches, parse_search_words
from domain.alerts.parsing.incoming_alert import (
    MissingAttributesError,
    NoValidItemError,
    UnreadableBodyError,
)
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.storing import intake
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.audit.events import EventActor
from models import Alert, AlertNote, Delivery, Environment, Occurrence
from tests.support.alerts.senders import item, webhook
from tests.support.database.postgres import Postgres
from tests.support.service.commands import operate
from web.extensions import db
from web.settings.environment import Settings, parse_settings

READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
MAPPING = FieldMapping({AlertField.SEVERITY: (("prio",),), AlertField.RUNBOOK: (("book",),)})
BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
TITLES = ("CPU 80%", "CPU 100% DEAD", "Zürich — 磁盘\x00", "", None)
SEVERITIES = ("low", "critical", "Medium", "warning", "unknown", "", None, 3)
WORDS = ("web", "db 1", "", None, "x" * 300, ["a", "b"])
TIMES = ("2026-11-21T11:00:00Z", "2026-11-21T12:03:00Z", 1795262700, "2099-01-01", "never", None)
EVERYTHING = ("cpu", "dead", "web", "db", "磁盘", "prod")


class House:
    """A database that receives the same deliveries as the others."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        operate(app, "users", "create", "alice", "--email", "alice@example.org")
        operate(app, "groups", "create", "acme")
        operate(app, "projects", "create", "acme/shop")
        for kind in ("http", "prometheus"):
            operate(app, "integrations", "create", "acme/shop", "--type", kind, "--name", kind)

    def take(self, body_format: AlertFormat, body: bytes, moment: datetime) -> object:
        """Store a body and return its result."""
        mapping = MAPPING if body_format is HTTP else FieldMapping()
        try:
            parsed = body_format.read(body, now=moment, reading=READING, mapping=mapping)
        except (MissingAttributesError, NoValidItemError, UnreadableBodyError) as error:
            return str(error)
        delivery = InboundDelivery(
            project_id=1,
            integration_id=1 if body_format is HTTP else 2,
            format=body_format.name,
            sender="192.0.2.1",
            body=body,
            size=len(body),
            received_at=moment,
            began_ns=0,
            mapping=mapping,
            # There is one delivery per minute, so some copies are in time and others are late.
            late_copies=timedelta(minutes=20),
        )
        result = intake.store_alerts(
            parsed, delivery, connection=self.app.extensions["gatebell"].connections
        )
        return result.items, result.by_item

    def change(self, status: str, iid: int, moment: datetime) -> object:
        """Change the status of an alert as a user."""
        change = StatusChange(status=status, by=EventActor(id=1, name="alice"))
        with self.app.app_context():
            done = change_alert_statuses(1, [iid], change, session=db.session(), now=moment)
            db.session.commit()
        return done

    def kept(self) -> dict[str, Any]:
        """Return the contents of all tables without generated ids."""
        with self.app.app_context():
            tables = {
                model.__tablename__: self._rows(model.__table__)
                for model in (Delivery, Alert, Occurrence, AlertNote, Environment)
            }
            found = {word: self._found(word) for word in EVERYTHING}
        return {**tables, "search": found}

    def _rows(self, table: Any) -> list[dict[str, Any]]:
        assert isinstance(table, Table)
        iids = {alert.id: alert.iid for alert in db.session.scalars(select(Alert))}
        deliveries = db.session.scalars(select(Delivery.id).order_by(Delivery.id)).all()
        positions: dict[int | None, int | None] = {
            None: None,
            **{number: position for position, number in enumerate(deliveries)},
        }
        rows = [dict(row) for row in db.session.execute(select(table)).mappings()]
        for row in rows:
            row.pop("id", None)
            if "alert_id" in row:
                row["alert_id"] = iids[row["alert_id"]]
            if "delivery_id" in row:
                row["delivery_id"] = positions[row["delivery_id"]]
        return sorted(rows, key=repr)

    def _found(self, word: str) -> list[int]:
        matches = find_matches(parse_search_words(word), project_id=1, session=db.session())
        return sorted(db.session.scalars(select(Alert.iid).where(matches.condition)))


@pytest.fixture
def houses(
    make_app: Callable[[Settings], Flask],
    migrated_sqlite: Path,
    postgres: Postgres,
    migrated_postgres: str,
    tmp_path: Path,
) -> list[House]:
    """One database for each writer: SQLite, webhooks on Postgres, single alerts on Postgres."""
    file = tmp_path / "gatebell.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    urls = [
        f"sqlite:///{file}",
        *(postgres.new_database(template=migrated_postgres) for _ in range(2)),
    ]
    environment = {
        "BASE_URL": "http://localhost",
        "INSTANCE_PATH": str(tmp_path),
        "SECRET_KEY": "a key that only tests have, and everybody knows",
    }
    return [House(make_app(parse_settings({**environment, "DATABASE_URL": url}))) for url in urls]


def generic(random: Random) -> bytes:
    """Return a generic body with random fields."""
    fields = {
        "fingerprint": random.choice(("a", "a", "b", ["c"], None)),
        "title": random.choice(TITLES),
        "prio": random.choice(SEVERITIES),
        "book": random.choice(("https://wiki.example/cpu", None)),
        "description": random.choice(WORDS),
        "service": random.choice(WORDS),
        "monitoring_tool": random.choice(WORDS),
        "hosts": random.choice(WORDS),
        "platform_environment_name": random.choice(("prod", None)),
        "start_time": random.choice(TIMES),
        "end_time": random.choice((*TIMES, *[None] * 20)),
    }
    return json.dumps({name: fields[name] for name in fields if random.random() < 0.6}).encode()


def metrics(random: Random) -> bytes:
    """Return a webhook with random labels and annotations, usually of one item."""
    items = [
        item(
            random.choice("abc"),
            labels={"alertname": "CPU", "severity": random.choice(SEVERITIES)},
            annotations={"title": random.choice(TITLES), "description": random.choice(WORDS)},
            status=random.choice(("firing", "firing", "firing", "resolved")),
            startsAt=random.choice(TIMES) or "?",
            generatorURL=random.choice(
                ("http://p/g?g0.expr=up%3D%3D0", "http://p/g?g0.expr=1", "")
            ),
        )
        for _ in range(random.choice((1, 1, 1, 1, 3)))
    ]
    return webhook(*items, truncatedAlerts=random.choice((0, 3)))


def step(random: Random, houses: Sequence[House], moment: datetime) -> list[object]:
    """Apply the same action to each database and return the results."""
    if random.random() < 0.15:
        status = random.choice(("acknowledged", "resolved", "ignored", "triggered"))
        iid = random.randrange(1, 6)
        return [house.change(status, iid, moment) for house in houses]
    is_metrics = random.random() < 0.4
    body_format = PROMETHEUS if is_metrics else HTTP
    body = metrics(random) if is_metrics else generic(random)
    small, batch, single = houses
    answers = [small.take(body_format, body, moment), single.take(body_format, body, moment)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "_is_single_alert", lambda _parsed: False)
        return [*answers, batch.take(body_format, body, moment)]


@pytest.mark.long
def test_all_writers_store_the_same_rows(houses: list[House]) -> None:
    random = Random(0)  # noqa: S311 - the same bodies each time
    for number in range(140):
        moment = BEGIN + timedelta(minutes=number, microseconds=number % 3)
        first, *others = step(random, houses, moment)
        assert all(other == first for other in others), number
    kept, *copies = (house.kept() for house in houses)
    for copy in copies:
        for name in kept:
            assert copy[name] == kept[name], name
    # Each kind of event has happened.
    assert {row["is_late"] for row in kept["occurrences"]} == {False, True}
    assert any(row["changes"] for row in kept["alert_notes"])
    assert any(row["raised_from"] is not None for row in kept["alerts"])
    assert any(row["truncated_alerts"] for row in kept["deliveries"])
    assert any(kept["search"].values())
