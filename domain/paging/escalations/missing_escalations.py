"""Creates escalations for alerts whose status changed before the worker processed the alerts.

The worker processes an alert a moment after it opens, or much later if no worker was running. Users
may acknowledge, snooze, escalate or resolve the alert before the worker processes it. An escalation
with a policy is still created for such an alert, so that its acknowledgement can expire and the
alert can be escalated.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.alerts.formats.base import ParserSettings
from domain.alerts.matching.alert_labels import find_alert_labels
from domain.core.database.bulk_statements import build_session_insert
from domain.paging.escalations.routes import PolicyChoice, load_routing
from domain.paging.escalations.state import EscalationState
from models import Alert, Escalation

_TRIGGERED = "triggered"
#: States of escalations that a snooze created without choosing a policy.
_SNOOZE_CREATED_STATES = (EscalationState.SNOOZED.value, EscalationState.STOPPED.value)


def choose_policies_for_alerts(
    alert_ids: Collection[int], *, session: Session, parser_settings: ParserSettings
) -> Mapping[int, PolicyChoice]:
    """Return the policies that apply to alerts now, by alert ID.

    IDs without an alert are left out.
    """
    labels = find_alert_labels(alert_ids, session=session, reading=parser_settings)
    routing = load_routing({each.project_id for each in labels.values()}, session=session)
    return {
        alert_id: routing[each.project_id].choose_policy(each) for alert_id, each in labels.items()
    }


def create_stopped_escalations(
    alert_ids: Collection[int], *, session: Session, now: datetime, parser_settings: ParserSettings
) -> None:
    """Create missing escalations in the stopped state, with the policies that apply now."""
    choices = choose_policies_for_alerts(
        alert_ids, session=session, parser_settings=parser_settings
    )
    alerts = session.execute(
        select(Alert.id, Alert.project_id, Alert.created_at)
        .where(Alert.id.in_(choices))
        .order_by(Alert.id)
    ).all()
    rows = [
        {
            "alert_id": alert.id,
            "project_id": alert.project_id,
            "state": (
                EscalationState.STOPPED
                if choices[alert.id].policy_id
                else EscalationState.NO_POLICY
            ).value,
            "policy_id": choices[alert.id].policy_id,
            "route_id": choices[alert.id].route_id,
            "round": 1,
            "step": 0,
            # If the alert recurs, the delays of its steps are counted from this time, so that the
            # steps do not wait for the worker a second time.
            "round_began_at": min(alert.created_at, now),
            "has_reached": False,
            "started_at": now,
            "ended_at": now,
            "decided_at": now,
        }
        for alert in alerts
    ]
    if rows:
        insert = build_session_insert(Escalation, session=session).on_conflict_do_nothing()
        session.execute(insert, rows)


def create_escalations_for_changed_alerts(
    alert_ids: Collection[int], *, session: Session, now: datetime, parser_settings: ParserSettings
) -> None:
    """Create missing escalations for alerts that are no longer triggered.

    Also set the policies of escalations that a snooze created without a policy.
    """
    found = session.execute(
        select(Alert.id, Escalation.id.label("escalation_id"))
        .outerjoin(Escalation, Escalation.alert_id == Alert.id)
        .where(
            Alert.id.in_(alert_ids),
            Alert.status != _TRIGGERED,
            or_(
                Escalation.id.is_(None),
                Escalation.policy_id.is_(None) & Escalation.state.in_(_SNOOZE_CREATED_STATES),
            ),
        )
    ).all()
    missing = [row.id for row in found if row.escalation_id is None]
    if missing:
        create_stopped_escalations(
            missing, session=session, now=now, parser_settings=parser_settings
        )
    without = [row.id for row in found if row.escalation_id is not None]
    if without:
        is_one = Escalation.alert_id.in_(without)
        rows = session.scalars(select(Escalation).where(is_one)).all()
        assign_policies_after_snooze(rows, session=session, parser_settings=parser_settings)


def assign_policies_after_snooze(
    rows: Sequence[Escalation], *, session: Session, parser_settings: ParserSettings
) -> None:
    """Set the policies of locked escalations that a snooze created without a policy."""
    without = {
        row.alert_id: row
        for row in rows
        if row.policy_id is None and row.state in _SNOOZE_CREATED_STATES
    }
    if not without:
        return
    for alert_id, choice in choose_policies_for_alerts(
        without, session=session, parser_settings=parser_settings
    ).items():
        row = without[alert_id]
        row.policy_id, row.route_id = choice.policy_id, choice.route_id
    session.flush()  # The following statements need the stored rows.
