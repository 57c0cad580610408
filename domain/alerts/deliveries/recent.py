"""The most recent deliveries of the whole instance, for administrators."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.deliveries.types import outcome_of
from models import Delivery, Integration, Project


@dataclass(frozen=True, kw_only=True)
class RecentDelivery:
    """A delivery with its project and integration."""

    id: int
    received_at: datetime
    status_code: int
    reason: str | None
    project_path: str
    #: None if the integration was deleted.
    integration_id: int | None
    integration_name: str | None
    #: IP address of the client, name of a user, or which part of the service reported it.
    sender: str

    @property
    def outcome(self) -> str:
        """`accepted` or `refused`."""
        return outcome_of(self.status_code)


def recent_deliveries(*, limit: int, session: Session) -> tuple[RecentDelivery, ...]:
    """Return the most recent deliveries, the newest first."""
    rows = session.execute(
        select(
            Delivery.id,
            Delivery.received_at,
            Delivery.status_code,
            Delivery.reason,
            Delivery.integration_id,
            Delivery.sender,
            Integration.name.label("integration_name"),
            Project.path.label("project_path"),
        )
        .join(Project, Project.id == Delivery.project_id)
        .outerjoin(Integration, Integration.id == Delivery.integration_id)
        .where(Project.deleted_at.is_(None))
        .order_by(Delivery.id.desc())
        .limit(limit)
    )
    return tuple(RecentDelivery(**row) for row in rows.mappings())
