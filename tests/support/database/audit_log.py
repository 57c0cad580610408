"""What the audit log of a running service holds."""

from sqlalchemy import func, select

from domain.audit.events import EventKind
from domain.audit.log import EventFilter, EventView, page_of_events
from domain.database.paging import Slice
from models import AuditEvent
from tests.support.accounts.people import Person, database_of
from tests.support.service.live import LiveGatebell


def events_about(
    gatebell: LiveGatebell, person: Person, kind: EventKind | None = None
) -> tuple[EventView, ...]:
    """Return the events of an account, the newest first."""
    wanted = EventFilter(user=person.username, kind=kind.value if kind else "")
    with database_of(gatebell) as session:
        return page_of_events(wanted, Slice(size=100), session=session).items


def event_about(gatebell: LiveGatebell, person: Person, kind: EventKind) -> EventView:
    """Return the one event of this kind that concerns an account."""
    (event,) = events_about(gatebell, person, kind)
    return event


def events_with_subject(gatebell: LiveGatebell, subject: str) -> list[AuditEvent]:
    """Return the events of one thing, the newest first."""
    statement = select(AuditEvent).where(AuditEvent.subject == subject)
    with database_of(gatebell) as session:
        found = session.scalars(statement.order_by(AuditEvent.id.desc())).all()
        session.expunge_all()
        return list(found)


def count_events(gatebell: LiveGatebell) -> int:
    """Return how many events there are in all."""
    with database_of(gatebell) as session:
        return session.scalar(select(func.count(AuditEvent.id))) or 0
