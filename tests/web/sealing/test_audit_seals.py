"""Tests that `audit verify` detects changed, added and removed audit events."""

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, delete, func, insert, select, update
from sqlalchemy.orm import Session

from domain.audit.events import Event, EventKind, EventSource, store_event
from models import AuditEvent, AuditSeal
from web.database.engine import open_engine
from web.jobs.retention import prune_database, seal_audit_events
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("postgres")

DAY = timedelta(days=1)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def now() -> datetime:
    return datetime.now(UTC)


class Trail:
    """Represents the audit log of a database, and changes that an intruder makes."""

    def __init__(self, app: Flask, settings: Settings, engine: Engine) -> None:
        self._app = app
        self._settings = settings
        self._engine = engine

    def write(self, *subjects: str, at: datetime | None = None, **details: Any) -> None:
        with Session(self._engine) as session, session.begin():
            for subject in subjects:
                event = Event(kind=EventKind.TOKEN_REVOKED, subject=subject, details=details)
                source = EventSource(address="192.0.2.1", user_agent="Lynx", request_id="r")
                store_event(event, source, session=session, now=at or now())

    def seal(self) -> None:
        seal_audit_events(self._settings)

    def prune(self) -> int:
        return prune_database(self._settings)["audit_events"]

    def tamper(self, statement: Any) -> None:
        with self._engine.begin() as connection:
            assert connection.execute(statement).rowcount

    def verify_after(self, statement: Any) -> dict[str, Any]:
        """Tamper, verify, and restore the original rows."""
        with self._engine.begin() as connection:
            kept = {
                table: list(
                    map(dict, connection.execute(select(*table.__table__.columns)).mappings())
                )
                for table in (AuditSeal, AuditEvent)
            }
        self.tamper(statement)
        answer = self.verify()
        with self._engine.begin() as connection:
            for table in reversed(kept):
                connection.execute(delete(table))
            for table, rows in kept.items():
                connection.execute(insert(table), rows)
        return answer

    def count(self, table: type[AuditEvent | AuditSeal]) -> int:
        with Session(self._engine) as session:
            return session.scalar(select(func.count(table.id))) or 0

    def verify(self, *arguments: str) -> dict[str, Any]:
        done = self._app.test_cli_runner().invoke(args=("audit", "verify", *arguments))
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        assert done.exit_code == (0 if answer["intact"] else 1)
        return answer


@pytest.fixture
def trail(app: Flask, settings: Settings) -> Iterator[Trail]:
    engine = open_engine(settings)
    yield Trail(app, settings, engine)
    engine.dispose()


@pytest.fixture
def sealed(trail: Trail) -> Trail:
    """Create three seals over six events."""
    for number in range(3):
        trail.write(f"a{number}", f"b{number}", who="alice", scopes=["api", "\udce4"], count=3)
        trail.seal()
    return trail


@pytest.mark.both_databases
def test_an_unchanged_trail_is_intact(sealed: Trail) -> None:
    sealed.write("not under a seal yet")
    answer = sealed.verify()
    assert answer["intact"]
    assert (answer["events"], answer["unsealed"], answer["seals"]) == (7, 1, 3)


def test_no_seal_is_made_without_new_events(sealed: Trail) -> None:
    sealed.seal()
    assert sealed.count(AuditSeal) == 3


FIRST = update(AuditEvent).where(AuditEvent.subject == "a0")
SECOND_SEAL = update(AuditSeal).where(AuditSeal.id == 2)
CHANGED = {
    "subject": FIRST.values(subject="something else"),
    "kind": FIRST.values(kind="sign_in.succeeded"),
    "address": FIRST.values(address=None),
    "details": FIRST.values(details={}),
    "moment": FIRST.values(created_at=LONG_AGO),
    "digest": FIRST.values(digest=b"x" * 32),
    "digest of what was erased": FIRST.values(erased_digest=b"x" * 32),
    "another seal": FIRST.values(seal_id=2),
    "no seal": FIRST.values(seal_id=None),
    "a seal that does not exist": FIRST.values(seal_id=77),
}
ADDED_OR_REMOVED = {
    "an event": delete(AuditEvent).where(AuditEvent.subject == "b1"),
    "all events of a seal": delete(AuditEvent).where(AuditEvent.seal_id == 2),
    "the first seal": delete(AuditSeal).where(AuditSeal.id == 1),
    "a seal": delete(AuditSeal).where(AuditSeal.id == 2),
    "the last seal": delete(AuditSeal).where(AuditSeal.id == 3),
    "the count of a seal": SECOND_SEAL.values(event_count=1),
    "that it was pruned": SECOND_SEAL.values(pruned_mac=b"x" * 32),
    "when it was": SECOND_SEAL.values(newest_at=datetime(2020, 1, 1, tzinfo=UTC)),
    "one event more": insert(AuditEvent).values(
        created_at=LONG_AGO,
        kind="sign_in.succeeded",
        actor_name="alice",
        subject="",
        details={},
        seal_id=1,
        digest=b"x" * 32,
    ),
}


@pytest.mark.both_databases
def test_a_changed_event_is_detected(sealed: Trail) -> None:
    answers = {name: sealed.verify_after(change) for name, change in CHANGED.items()}
    assert [name for name, answer in answers.items() if answer["intact"]] == []
    assert [name for name, answer in answers.items() if not answer["faults"]] == []
    assert sealed.verify()["intact"]


@pytest.mark.long
@pytest.mark.both_databases
def test_added_and_removed_events_are_detected(sealed: Trail) -> None:
    answers = {name: sealed.verify_after(change) for name, change in ADDED_OR_REMOVED.items()}
    assert [name for name, answer in answers.items() if answer["intact"]] == []
    assert sealed.verify()["intact"]


def test_a_recorded_head_detects_events_removed_with_their_seals(
    sealed: Trail,
) -> None:
    head = sealed.verify()["head"]
    sealed.tamper(delete(AuditEvent).where(AuditEvent.seal_id == 3))
    sealed.tamper(delete(AuditSeal).where(AuditSeal.id == 3))
    # Only a head that was recorded outside the database can show the loss.
    assert sealed.verify()["intact"]
    assert not sealed.verify("--head", head)["intact"]


@pytest.mark.long
def test_a_head_stays_valid_while_the_trail_grows(sealed: Trail) -> None:
    head = sealed.verify()["head"]
    sealed.write("later")
    sealed.seal()
    assert sealed.verify("--head", head)["intact"]


def test_an_invalid_head_is_rejected(app: Flask) -> None:
    for head in ("", "1", "1:", "x:00", "1:zz", "1:00", "²:" + 64 * "0"):
        done = app.test_cli_runner().invoke(args=("audit", "verify", "--head", head))
        assert done.exit_code == 2, head


@pytest.mark.long
@pytest.mark.both_databases
def test_pruning_removes_old_events_with_their_seals_and_keeps_the_rest_intact(
    trail: Trail,
) -> None:
    for days in (400, 399, 398, 10, 0):
        trail.write(f"{days} days ago", at=now() - days * DAY)
        trail.seal()
    head = trail.verify()["head"]
    assert trail.prune() == 3
    assert trail.count(AuditSeal) == 3  # One seal replaces the expired seals before it.
    assert trail.verify("--head", head)["intact"]
    assert trail.count(AuditEvent) == 2
    trail.tamper(delete(AuditEvent).where(AuditEvent.subject == "10 days ago"))
    assert not trail.verify()["intact"]


@pytest.mark.long
def test_unsealed_old_events_are_pruned(trail: Trail) -> None:
    trail.write("long ago", at=now() - 500 * DAY)
    trail.write("today")
    assert trail.prune() == 1
    assert trail.verify()["intact"]


@pytest.mark.long
def test_a_trail_continues_after_all_its_events_were_pruned(trail: Trail) -> None:
    trail.write("long ago", at=now() - 500 * DAY)
    assert trail.prune() == 1
    trail.write("today")
    trail.seal()
    assert trail.verify()["intact"]
    trail.tamper(delete(AuditSeal).where(AuditSeal.id == 1))
    assert not trail.verify()["intact"]


@pytest.mark.long
@pytest.mark.both_databases
def test_concurrent_workers_make_one_chain_of_seals(trail: Trail) -> None:
    trail.write(*[f"event {number}" for number in range(1_200)])
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(trail.seal) for _ in range(4)]:
            done.result()
    trail.seal()
    answer = trail.verify()
    assert answer["intact"]
    assert (answer["events"], answer["unsealed"]) == (1_200, 0)


@pytest.mark.long
@pytest.mark.usefixtures("sealed")
def test_seals_stay_valid_after_a_change_of_the_secret_key(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    rotated = replace(
        settings,
        secret_key="another key, of which the tests know as well",
        secret_key_fallbacks=(settings.secret_key,),
    )
    done = make_app(rotated).test_cli_runner().invoke(args=("audit", "verify"))
    assert json.loads(done.stdout)["intact"]


@pytest.mark.both_databases
def test_each_event_is_logged_after_its_commit(
    trail: Trail, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gatebell.audit")
    trail.write("kept", who="alice")
    engine = open_engine(settings)
    with Session(engine) as session:
        _record_and_flush("taken back", session)
        session.rollback()
        _record_and_flush("kept beside a savepoint", session)
        savepoint = session.begin_nested()
        _record_and_flush("in a savepoint that was taken back", session)
        savepoint.rollback()
        session.commit()
    engine.dispose()
    said = [each for each in caplog.records if vars(each).get("event") == "audit.event_stored"]
    assert [vars(each)["audit_subject"] for each in said] == ["kept", "kept beside a savepoint"]
    assert vars(said[0])["audit_details"] == {"who": "alice"}


def _record_and_flush(subject: str, session: Session) -> None:
    event = Event(kind=EventKind.TOKEN_REVOKED, subject=subject)
    store_event(event, EventSource(), session=session, now=now())
    session.flush()


def test_the_head_is_logged(trail: Trail, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gatebell.audit")
    trail.write("one")
    trail.seal()
    (line,) = [each for each in caplog.records if vars(each).get("event") == "audit.events_sealed"]
    assert vars(line)["head"] == trail.verify()["head"]
