"""Destinations of the audit log in a new database, with a clock that tests set."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.audit.events import STREAMED_ONLY, Event, EventKind, EventSource, store_event
from domain.audit.streamed_events import queue_streamed_event
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.delivery.audit_streams.types import AuditStream
from domain.delivery.outgoing.destinations import DestinationDetails, DestinationWithSecret
from models import AuditStreamEntry
from tests.support.database.kept_jobs import KeptJobs
from web.database.engine import open_engine
from web.jobs.destinations import AuditStreamJob
from web.settings.environment import Settings

#: Backoff without jitter, so that a test knows when the next attempt is due.
WHOLE_SHARE = 1.0


class Streams:
    """Destinations, events, and a worker that delivers on request."""

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, outgoing_private_addresses="127.0.0.0/8")
        #: Receivers reject old and future signatures, so a test starts at the current time.
        self.now = datetime.now(UTC)
        self.engine = open_engine(settings)
        self._kept = KeptJobs()
        self.keyring = Keyring(settings.secret_key)
        self._written = 0

    def stop_workers(self) -> None:
        """Stop the workers, and close the database."""
        self._kept.close()
        self.engine.dispose()

    @contextmanager
    def open_session(self) -> Iterator[Session]:
        """Open a transaction."""
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    def create_worker(self, **changes: Any) -> AuditStreamJob:
        """Create a worker, as each host has one."""
        return self._make_worker(replace(self.settings, **changes))

    def _make_worker(self, settings: Settings) -> AuditStreamJob:
        return AuditStreamJob(settings, clock=lambda: self.now, share=lambda: WHOLE_SHARE)

    def deliver_events(self, **changes: Any) -> int:
        """Send due events, and return the number of destinations."""
        settings = replace(self.settings, **changes)
        return self._kept.get("deliveries", settings, self._make_worker).process_all_due_work()

    def create_destination(self, url: str) -> DestinationWithSecret[AuditStream]:
        with self.open_session() as session:
            return AUDIT_STREAM_KIND.create_destination(
                DestinationDetails(url=url),
                session=session,
                keyring=self.keyring,
                now=self.now,
            )

    def read_stream_state(self, stream: AuditStream) -> AuditStream:
        with self.open_session() as session:
            return AUDIT_STREAM_KIND.get_destination(
                stream.id, session=session, keyring=self.keyring, now=self.now
            )

    def write_events(self, count: int = 1, kind: EventKind = EventKind.TOKEN_REVOKED) -> list[str]:
        """Write events in one transaction each, and return their subjects."""
        subjects = []
        for _ in range(count):
            with self.open_session() as session:
                subjects.append(self.write_event(session, kind))
        return subjects

    def write_event(self, session: Session, kind: EventKind = EventKind.TOKEN_REVOKED) -> str:
        """Write an event in a transaction that the caller ends."""
        self._written += 1
        subject = f"thing {self._written}"
        keep = queue_streamed_event if kind in STREAMED_ONLY else store_event
        event = Event(kind=kind, subject=subject)
        keep(event, EventSource(address="192.0.2.1"), session=session, now=self.now)
        session.flush()
        return subject

    def count_waiting_events(self) -> int:
        """Return the number of events that wait for any destination."""
        with self.open_session() as session:
            return session.scalar(select(func.count(AuditStreamEntry.id))) or 0

    def advance_time(self, **time: float) -> None:
        """Let time pass."""
        self.now += timedelta(**time)
