"""Changes an alert's status by hand: any to any, but two open alerts never share a fingerprint."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.alerts.queries import STATUSES
from domain.errors import ConflictError, InvalidError, NotFoundError
from models import Alert


def change_status(
    project_id: int, iid: int, status: str, *, session: Session, now: datetime
) -> None:
    """Give the alert another status; raise Invalid, Conflict or NotFoundError."""
    if status not in STATUSES:
        message = f"A status is one of {', '.join(STATUSES)}."
        raise InvalidError(message, field="status")
    alert = session.scalar(
        select(Alert).where(Alert.project_id == project_id, Alert.iid == iid).with_for_update()
    )
    if alert is None:
        message = f"There is no alert {iid} in this project."
        raise NotFoundError(message)
    if alert.status == status:
        return
    alert.status = status
    alert.ended_at = now if status == "resolved" else None
    try:
        session.flush()  # the index knows whether another open alert has this fingerprint
    except IntegrityError as error:
        message = "Another open alert has the same fingerprint; work on that one instead."
        raise ConflictError(message, field="status") from error
