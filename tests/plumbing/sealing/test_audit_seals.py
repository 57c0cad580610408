"""Nobody changes, adds or removes an audit event in the database without `audit verify` telling."""

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
from web.settings.reader import Settings

pytestmark = pytest.mark.one_database("postgres")

DAY = timedelta(days=1)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def now() -> datetime:
    return datetime.now(UTC)


class Trail:
    """The audit log of one database, and what an intruder does to it."""

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
        """Tamper, verify, and put everything back as it was."""
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
    """Three seals over six events."""
    for number in range(3):
        trail.write(f"a{number}", f"b{number}", who="alice", scopes=["api", "\udce4"], count=3)
        trail.seal()
    return trail


@pytest.mark.both_databases
def test_a_trail_that_nobody_touched_is_intact(sealed: Trail) -> None:
    sealed.write("not under a seal yet")
    answer = sealed.verify()
    assert answer["intact"]
    assert (answer["events"], answer["unsealed"], answer["seals"]) == (7, 1, 3)


def test_sealing_again_without_a_new_event_makes_no_seal(sealed: Trail) -> None:
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
def test_an_event_that_was_changed_is_found(sealed: Trail) -> None:
    answers = {name: sealed.verify_after(change) for name, change in CHANGED.items()}
    assert [name for name, answer in answers.items() if answer["intact"]] == []
    assert [name for name, answer in answers.items() if not answer["faults"]] == []
    assert sealed.verify()["intact"]


@pytest.mark.long
@pytest.mark.both_databases
def test_what_was_added_or_removed_is_found(sealed: Trail) -> None:
    answers = {name: sealed.verify_after(change) for name, change in ADDED_OR_REMOVED.items()}
    assert [name for name, answer in answers.items() if answer["intact"]] == []
    assert sealed.verify()["intact"]


def test_events_whose_seals_went_with_them_are_missed_by_a_head_that_was_noted(
    sealed: Trail,
) -> None:
    head = sealed.verify()["head"]
    sealed.tamper(delete(AuditEvent).where(AuditEvent.seal_id == 3))
    sealed.tamper(delete(AuditSeal).where(AuditSeal.id == 3))
    assert sealed.verify()["intact"]  # Only what lies outside of the database knows.
    assert not sealed.verify("--head", head)["intact"]


@pytest.mark.long
def test_a_head_stays_good_while_the_trail_grows(sealed: Trail) -> None:
    head = sealed.verify()["head"]
    sealed.write("later")
    sealed.seal()
    assert sealed.verify("--head", head)["intact"]


def test_a_head_that_is_none_is_refused(app: Flask) -> None:
    for head in ("", "1", "1:", "x:00", "1:zz", "1:00", "²:" + 64 * "0"):
        done = app.test_cli_runner().invoke(args=("audit", "verify", "--head", head))
        assert done.exit_code == 2, head


@pytest.mark.long
@pytest.mark.both_databases
def test_old_events_go_with_their_seals_and_the_rest_is_intact(trail: Trail) -> None:
    for days in (400, 399, 398, 10, 0):
        trail.write(f"{days} days ago", at=now() - days * DAY)
        trail.seal()
    head = trail.verify()["head"]
    assert trail.prune() == 3
    assert trail.count(AuditSeal) == 3  # one says that those before it grew too old
    assert trail.verify("--head", head)["intact"]
    assert trail.count(AuditEvent) == 2
    trail.tamper(delete(AuditEvent).where(AuditEvent.subject == "10 days ago"))
    assert not trail.verify()["intact"]


@pytest.mark.long
def test_events_that_grew_too_old_unsealed_go_as_well(trail: Trail) -> None:
    trail.write("long ago", at=now() - 500 * DAY)
    trail.write("today")
    assert trail.prune() == 1
    assert trail.verify()["intact"]


@pytest.mark.long
def test_a_trail_of_which_all_has_grown_too_old_goes_on(trail: Trail) -> None:
    trail.write("long ago", at=now() - 500 * DAY)
    assert trail.prune() == 1
    trail.write("today")
    trail.seal()
    assert trail.verify()["intact"]
    trail.tamper(delete(AuditSeal).where(AuditSeal.id == 1))
    assert not trail.verify()["intact"]


@pytest.mark.long
@pytest.mark.both_databases
def test_several_workers_that_seal_at_once_make_one_chain(trail: Trail) -> None:
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
def test_the_seals_outlive_another_secret_key(
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
def test_each_event_is_logged_once_it_is_kept(
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
