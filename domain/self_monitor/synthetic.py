"""The synthetic alert: where it is sent, what became of it, and its removal afterwards."""

from dataclasses import dataclass, field
from datetime import datetime

import orjson
from sqlalchemy import delete, exists, func, or_, select
from sqlalchemy.orm import Session

from domain.alerts.formats.registry import OWN_FORMAT
from domain.alerts.reading import fingerprint
from domain.clock import written
from domain.keyring import Keyring
from models import (
    Alert,
    Escalation,
    EscalationPolicy,
    FormerPath,
    Integration,
    Page,
    PageMessage,
    Project,
)
from models.folding import fold

IDENTITY = "gatebell self-monitor"
TITLE = "Self-monitor: a synthetic alert"
_FINGERPRINT = fingerprint.of_value(IDENTITY)


class SelfMonitorError(Exception):
    """The check cannot be made, or a step of it failed; the text is a sentence."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The HTTP endpoint that gets the synthetic alert."""

    project_id: int
    #: Below the public URL.
    path: str
    key: str = field(repr=False)


def find_target(project_path: str, *, session: Session, keyring: Keyring) -> Target:
    """Return the oldest active HTTP endpoint of a project; raise SelfMonitorError without one."""
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
        message = f"The project {project_path} has no active HTTP endpoint."
        raise SelfMonitorError(message)
    integration, path = row
    return Target(
        project_id=integration.project_id,
        path=f"/{path}/alerts/notify/self-monitor/{integration.endpoint_identifier}.json",
        key=keyring.decrypt(integration.key_ciphertext),
    )


def firing_body() -> bytes:
    """Return the body that opens the alert."""
    return orjson.dumps(_content())


def recovery_body(now: datetime) -> bytes:
    """Return the body that resolves it."""
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
    """Return the id of the open synthetic alert, or None."""
    return session.scalar(
        select(Alert.id).where(
            Alert.fingerprint == _FINGERPRINT,
            Alert.project_id == project_id,
            Alert.status != "resolved",
        )
    )


def awaits_page(project_id: int, alert_id: int, *, session: Session) -> bool:
    """Return whether somebody is to be paged for the alert, or that is not decided yet."""
    decided = session.execute(
        select(Escalation.policy_id).where(Escalation.alert_id == alert_id)
    ).first()
    if decided is not None:
        return decided.policy_id is not None
    policies = exists().where(EscalationPolicy.project_id == project_id)
    return bool(session.scalar(select(policies)))


def page_sent_at(alert_id: int, *, session: Session) -> datetime | None:
    """Return when the first page for the alert had left, or None."""
    return session.scalar(
        select(func.min(PageMessage.ended_at))
        .join(Page, Page.batch_id == PageMessage.batch_id)
        .where(Page.alert_id == alert_id, PageMessage.outcome == "sent")
    )


def remove_earlier(project_id: int, *, session: Session) -> None:
    """Remove the synthetic alerts but the last one, so that they do not fill lists."""
    of_monitor = (Alert.fingerprint == _FINGERPRINT) & (Alert.project_id == project_id)
    newest = session.scalar(select(func.max(Alert.id)).where(of_monitor))
    if newest is not None:
        earlier = delete(Alert).where(of_monitor, Alert.id < newest, Alert.status == "resolved")
        session.execute(earlier.execution_options(synchronize_session=False))
