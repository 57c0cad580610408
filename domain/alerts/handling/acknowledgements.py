"""Queries for the user and the severity of each alert's last acknowledgement."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import ActivityEntryKind
from domain.core.database.bulk_statements import fetch_rows_by_key
from models import Alert, AlertNote

_ACKNOWLEDGED = "acknowledged"
#: Prefixes of activity entries about renewed acknowledgements and snoozed alerts.
RENEWED_PREFIX = "is still on it, until"
SNOOZED_PREFIX = "snoozed it until"


@dataclass(frozen=True, kw_only=True)
class Acknowledgement:
    """The last acknowledgement, renewed acknowledgement or snooze of an alert."""

    #: ID of the user, or None for senders, the command line and deleted accounts.
    user_id: int | None
    #: Severity of the alert at the time of the acknowledgement; 0 is critical.
    severity: int


def find_last_acknowledgements(
    alert_ids: Collection[int], *, session: Session
) -> Mapping[int, Acknowledgement]:
    """Return the last acknowledgement of each acknowledged alert.

    Activity entries are in the order of the changes to the alert's row. Therefore, the severity
    that the user saw is the old value of the first severity change after the acknowledgement.
    """
    answers = fetch_rows_by_key(
        _LAST_ACKNOWLEDGEMENTS, AlertNote.alert_id, alert_ids, session=session
    )
    last = {row.alert_id: row for row in sorted(answers, key=lambda row: row.id)}
    changes = fetch_rows_by_key(_SEVERITY_CHANGES, AlertNote.alert_id, last, session=session)
    former: dict[int, int] = {}
    for change in sorted(changes, key=lambda row: row.id, reverse=True):
        if change.id > last[change.alert_id].id:
            former[change.alert_id] = change.changes["severity"][0]
    present = dict(
        session.execute(select(Alert.id, Alert.severity).where(Alert.id.in_(last))).all()
    )
    return {
        alert_id: Acknowledgement(
            user_id=last[alert_id].user_id, severity=former.get(alert_id, severity)
        )
        for alert_id, severity in present.items()
    }


_LAST_ACKNOWLEDGEMENTS = (
    select(AlertNote.alert_id, AlertNote.user_id, func.max(AlertNote.id).label("id"))
    .where(
        or_(
            (AlertNote.kind == ActivityEntryKind.STATUS.value) & (AlertNote.text == _ACKNOWLEDGED),
            (AlertNote.kind == ActivityEntryKind.HANDLING.value)
            & or_(
                AlertNote.text.startswith(RENEWED_PREFIX), AlertNote.text.startswith(SNOOZED_PREFIX)
            ),
        )
    )
    .group_by(AlertNote.alert_id, AlertNote.user_id)
)
_SEVERITY_CHANGES = select(AlertNote.id, AlertNote.alert_id, AlertNote.changes).where(
    AlertNote.changes["severity"].as_string().is_not(None)
)
