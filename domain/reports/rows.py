"""Reads what reports count: alerts, pages and answers of a project in a period.

Alerts are found by the index on their start, pages by that on project and time, and everything else
by those: the cost grows with the period, and not with what is stored besides.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, or_, select, union
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import BY_ITSELF, NoteKind
from domain.alerts.listing.filters import SEVERITIES
from domain.errors import InvalidError
from domain.escalations.explanation import contact_outcomes
from domain.escalations.types import ContactOutcome
from domain.notifications.states import PageState
from domain.on_call.plans import Period
from models import (
    Alert,
    AlertNote,
    AlertRoute,
    Contact,
    Escalation,
    EscalationPage,
    EscalationPolicy,
    Page,
    User,
)

#: A report with more is refused: its numbers are exact, and reading them would take too long.
MOST_ROWS = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedAlert:
    """An alert as reports count it."""

    id: int
    iid: int
    title: str
    severity: str
    fingerprint: bytes | None
    status: str
    created_at: datetime
    started_at: datetime
    ended_at: datetime | None
    recovery_received_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusEntry:
    """A status that an alert got otherwise than by a report."""

    status: str
    at: datetime
    #: Empty for the command line.
    by: str
    #: Whether the service gave it, because the sender was silent.
    is_by_itself: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedPage:
    """Somebody who was paged."""

    alert: CountedAlert
    at: datetime
    round: int
    step: int
    user_id: int | None
    user: str | None
    time_zone: str | None
    #: None for a person.
    channel_id: int | None
    #: Its label; None if it was deleted.
    channel: str | None
    state: PageState | None
    accepted_at: datetime | None
    batch_id: int | None
    policy: str | None
    route: str | None


_ALERT = (
    *(Alert.id, Alert.iid, Alert.title, Alert.severity, Alert.fingerprint, Alert.status),
    *(Alert.created_at, Alert.started_at, Alert.ended_at, Alert.recovery_received_at),
)


def _alert_of(row: Any) -> CountedAlert:
    return CountedAlert(
        **{column.key: getattr(row, column.key) for column in _ALERT}
        | {"severity": SEVERITIES[row.severity].value}
    )


def _started(project_id: int, within: Period) -> Sequence[ColumnElement[bool]]:
    return (
        Alert.project_id == project_id,
        Alert.started_at >= within.start,
        Alert.started_at < within.end,
    )


def _paged(project_id: int, within: Period) -> Sequence[ColumnElement[bool]]:
    return (
        Alert.project_id == project_id,
        # Those that an earlier release stored do not say of which project they are.
        or_(EscalationPage.project_id == project_id, EscalationPage.project_id.is_(None)),
        EscalationPage.paged_at >= within.start,
        EscalationPage.paged_at < within.end,
    )


def read_alerts(project_id: int, within: Period, *, session: Session) -> list[CountedAlert]:
    """Return the alerts that started in a period, in order; raise InvalidError for too many."""
    found = select(*_ALERT).where(*_started(project_id, within))
    ordered = found.order_by(Alert.started_at, Alert.id).limit(MOST_ROWS + 1)
    return list(map(_alert_of, _checked(session.execute(ordered).all())))


def read_pages(project_id: int, within: Period, *, session: Session) -> list[CountedPage]:
    """Return who was paged in a period, in order of time; raise InvalidError for too many."""
    policy_id = func.coalesce(EscalationPage.policy_id, Escalation.policy_id)
    is_known = EscalationPage.policy_id.is_not(None)
    # The default policy has no route, even if one chose another policy later.
    route_id = case((is_known, EscalationPage.route_id), else_=Escalation.route_id)
    found = (
        select(
            *_ALERT,
            *(EscalationPage.paged_at, EscalationPage.round, EscalationPage.step),
            *(EscalationPage.user_id, User.username, User.time_zone),
            *(EscalationPage.channel_id, Contact.label.label("channel")),
            *(Page.id.label("page_id"), Page.outcome, Page.outcome_at),
            *(Page.withdrawn_at, Page.batch_id),
            EscalationPolicy.name.label("policy"),
            AlertRoute.name.label("route"),
        )
        .select_from(EscalationPage)
        .join(Alert, Alert.id == EscalationPage.alert_id)
        .outerjoin(User, User.id == EscalationPage.user_id)
        .outerjoin(Contact, Contact.id == EscalationPage.channel_id)
        .outerjoin(Page, Page.key == EscalationPage.page_key)
        .outerjoin(Escalation, Escalation.id == EscalationPage.escalation_id)
        .outerjoin(EscalationPolicy, EscalationPolicy.id == policy_id)
        .outerjoin(AlertRoute, AlertRoute.id == route_id)
        .where(*_paged(project_id, within))
        .order_by(EscalationPage.paged_at, EscalationPage.id)
        .limit(MOST_ROWS + 1)
    )
    return list(map(_page_of, _checked(session.execute(found).all())))


def _checked(rows: Sequence[Any]) -> Sequence[Any]:
    if len(rows) > MOST_ROWS:
        message = (
            f"More than {MOST_ROWS:,} alerts or pages are in this period: choose a shorter one."
        )
        raise InvalidError(message, field="from")
    return rows


def _page_of(row: Any) -> CountedPage:
    return CountedPage(
        alert=_alert_of(row),
        at=row.paged_at,
        round=row.round,
        step=row.step,
        user_id=row.user_id,
        user=row.username,
        time_zone=row.time_zone,
        channel_id=row.channel_id,
        channel=row.channel,
        state=_state(row),
        accepted_at=row.outcome_at if row.outcome == PageState.ACCEPTED else None,
        batch_id=row.batch_id,
        policy=row.policy,
        route=row.route,
    )


def _state(row: Any) -> PageState | None:
    if row.page_id is None:
        return None
    if row.outcome is not None:
        return PageState(row.outcome)
    if row.withdrawn_at is not None:
        return PageState.WITHDRAWN
    return PageState.WAITING if row.batch_id is None else PageState.LEFT


def _alerts_paged(project_id: int, within: Period) -> Select[int]:
    return (
        select(EscalationPage.alert_id)
        .join(Alert, Alert.id == EscalationPage.alert_id)
        .where(*_paged(project_id, within))
    )


def read_entries(
    project_id: int, within: Period, *, session: Session
) -> Mapping[int, Sequence[StatusEntry]]:
    """Return the statuses of the alerts above by alert, in their order."""
    started = select(Alert.id).where(*_started(project_id, within))
    ids = union(started, _alerts_paged(project_id, within)).subquery()
    return entries_of(select(ids.c.id), session=session)


def entries_of(alert_ids: Select[int], *, session: Session) -> Mapping[int, Sequence[StatusEntry]]:
    """Return the statuses of alerts by alert, in their order."""
    found: dict[int, list[StatusEntry]] = defaultdict(list)
    rows = session.execute(
        select(
            AlertNote.alert_id,
            AlertNote.text,
            AlertNote.created_at,
            AlertNote.via,
            func.coalesce(User.username, AlertNote.user_name).label("by"),
        )
        .outerjoin(User, User.id == AlertNote.user_id)
        .where(AlertNote.alert_id.in_(alert_ids), AlertNote.kind == NoteKind.STATUS.value)
        .order_by(AlertNote.id)
    )
    for row in rows:
        is_by_itself = (row.via or "").startswith(BY_ITSELF)
        entry = StatusEntry(
            status=row.text, at=row.created_at, by=row.by, is_by_itself=is_by_itself
        )
        found[row.alert_id].append(entry)
    return found


def read_contacts(
    project_id: int, within: Period, *, session: Session
) -> Mapping[int, Sequence[ContactOutcome]]:
    """Return what became of the pages of a period at each contact, by the batch they left in."""
    batches = (
        select(Page.batch_id)
        .join(EscalationPage, EscalationPage.page_key == Page.key)
        .join(Alert, Alert.id == EscalationPage.alert_id)
        .where(*_paged(project_id, within), Page.batch_id.is_not(None))
    )
    return contact_outcomes(batches, session=session)
