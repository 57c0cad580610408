"""Self-monitor that sends a synthetic alert through all steps, from the public URL to the page."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson
from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from domain.alerts.formats.registry import OWN_FORMAT
from domain.alerts.reading import fingerprint
from domain.core.clock import written
from domain.core.database.rows import delete_rows
from domain.core.keyring import Keyring
from domain.core.types.base import columns_of
from domain.projects.owners import is_used_by, lineages
from models import (
    Alert,
    Escalation,
    EscalationPolicy,
    FormerPath,
    Integration,
    Page,
    PageMessage,
    Project,
    SelfMonitorCheck,
)
from models.folding import fold

#: Name of the turn in `job_turns`, which ensures that only one worker performs the check.
TURN = "self_monitor"
_KEPT = 1_000
#: Number of periods without a check after which the worker is considered broken.
_MISSED = 3
IDENTITY = "gatebell self-monitor"
TITLE = "Self-monitor: a synthetic alert"
_FINGERPRINT = fingerprint.of_value(IDENTITY)


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of a synthetic alert. Times are None for steps that did not happen."""

    started_at: datetime
    stored: timedelta | None = None
    paged: timedelta | None = None
    resolved: timedelta | None = None
    #: Description of the problem as a sentence, or None if there is none.
    problem: str | None = None
    #: Reason why the ping to the dead man's switch failed, or None.
    switch_problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class MonitorState:
    """The last check, and whether alerts are processed correctly."""

    #: Last check, or None if there was none yet.
    last: Check | None
    last_success_at: datetime | None
    is_late: bool

    @property
    def is_well(self) -> bool:
        """True if administrators need no warning."""
        if self.is_late:
            return False
        return self.last is None or (self.last.problem is None and not self.last.switch_problem)


def record_check(check: Check, *, session: Session) -> None:
    """Store a check, and delete old ones."""
    row = SelfMonitorCheck(
        started_at=check.started_at,
        stored_ms=_ms(check.stored),
        paged_ms=_ms(check.paged),
        resolved_ms=_ms(check.resolved),
        problem=check.problem,
        switch_problem=check.switch_problem,
    )
    session.add(row)
    session.flush()  # Assigns the ID.
    session.execute(delete_rows(SelfMonitorCheck).where(SelfMonitorCheck.id <= row.id - _KEPT))


def monitor_state(*, period: timedelta, session: Session, now: datetime) -> MonitorState:
    """Return the last check, and whether the next check is overdue."""
    newest = select(SelfMonitorCheck).order_by(SelfMonitorCheck.id.desc()).limit(1)
    last = session.scalars(newest).first()
    good = session.scalars(newest.where(SelfMonitorCheck.problem.is_(None))).first()
    return MonitorState(
        last=_view(last) if last else None,
        last_success_at=good.started_at if good else None,
        is_late=last is not None and now - last.started_at > _MISSED * period,
    )


def _view(row: SelfMonitorCheck) -> Check:
    return Check(
        **columns_of(row, Check),
        stored=_length(row.stored_ms),
        paged=_length(row.paged_ms),
        resolved=_length(row.resolved_ms),
    )


def _ms(length: timedelta | None) -> int | None:
    return None if length is None else max(length // timedelta(milliseconds=1), 0)


def _length(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(milliseconds=number)


class SelfMonitorError(Exception):
    """The check cannot be performed or one of its steps failed. The message is a sentence."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The HTTP endpoint that receives the synthetic alert."""

    project_id: int
    #: Path below the public URL.
    path: str
    key: str = field(repr=False)


def find_target(project_path: str, *, session: Session, keyring: Keyring) -> Target:
    """Return the oldest active HTTP endpoint of a project.

    Raise SelfMonitorError if there is none.
    """
    wanted = fold(project_path)
    moved = select(FormerPath.project_id).where(FormerPath.path_key == wanted)
    row = session.execute(
        select(Integration, Project.path)
        .join(Project, Project.id == Integration.project_id)
        .where(
            or_(Project.path_key == wanted, Project.id.in_(moved)),
            Integration.type == OWN_FORMAT.name,
            Integration.active.is_(True),
        )
        .order_by(Integration.id)
        .limit(1)
    ).first()
    if row is None:
        raise SelfMonitorError(f"The project {project_path} has no active HTTP endpoint.")
    integration, path = row
    return Target(
        project_id=integration.project_id,
        path=f"/{path}/alerts/notify/self-monitor/{integration.endpoint_identifier}.json",
        key=keyring.decrypt(integration.key_ciphertext),
    )


def firing_body() -> bytes:
    """Return the request body that opens the synthetic alert."""
    return orjson.dumps(_content())


def recovery_body(now: datetime) -> bytes:
    """Return the request body that resolves the synthetic alert."""
    return orjson.dumps({**_content(), "end_time": written(now)})


def _content() -> dict[str, object]:
    return {
        "title": TITLE,
        "description": "Sent by Gatebell itself to time the way from the request to the page. "
        "It resolves itself.",
        "severity": "low",
        "monitoring_tool": "Gatebell self-monitor",
        "fingerprint": IDENTITY,
        "synthetic": True,
    }


def open_alert(project_id: int, *, session: Session) -> int | None:
    """Return the ID of the open synthetic alert, or None."""
    return session.scalar(
        select(Alert.id).where(
            _is_synthetic(project_id, session=session), Alert.status != "resolved"
        )
    )


def _is_synthetic(project_id: int, *, session: Session) -> ColumnElement[bool]:
    """Return the condition for synthetic alerts, regardless of the receiving integration."""
    used = select(Integration.monitor_id).where(Integration.project_id == project_id).distinct()
    monitors = {None, *session.scalars(used)}
    fingerprints = {fingerprint.within_monitor(_FINGERPRINT, each) for each in monitors}
    return and_(Alert.project_id == project_id, Alert.fingerprint.in_(fingerprints))


def awaits_page(project_id: int, alert_id: int, *, session: Session) -> bool:
    """Return whether a page for the alert is expected or not decided yet."""
    decided = session.execute(
        select(Escalation.policy_id).where(Escalation.alert_id == alert_id)
    ).first()
    if decided is not None:
        return decided.policy_id is not None
    used = lineages([project_id], session=session).values()
    policies = exists().where(is_used_by(EscalationPolicy, used))
    return bool(session.scalar(select(policies)))


def page_sent_at(alert_id: int, *, session: Session) -> datetime | None:
    """Return the time at which the first page for the alert was sent, or None."""
    return session.scalar(
        select(func.min(PageMessage.ended_at))
        .join(Page, Page.batch_id == PageMessage.batch_id)
        .where(Page.alert_id == alert_id, PageMessage.outcome == "sent")
    )


def remove_earlier(project_id: int, *, session: Session) -> None:
    """Delete all synthetic alerts except the last one, so that they do not fill lists."""
    of_monitor = _is_synthetic(project_id, session=session)
    newest = session.scalar(select(func.max(Alert.id)).where(of_monitor))
    if newest is not None:
        is_over = of_monitor & (Alert.status == "resolved")
        session.execute(delete_rows(Alert).where(is_over, Alert.id < newest))
