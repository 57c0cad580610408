"""Decides which incidents firing alerts join, and which incidents they open.

The caller looks up the current state, and stores the decisions. The module itself reads only the
active rules from the database.

As in GitLab, each alert opens its own incident, with two exceptions. If the fingerprint of an alert
belongs to an open incident, the alert joins this incident. If a rule has opened STORM_SIZE
incidents within STORM_TIME, further alerts join the rule's newest incident until that incident is
closed. Therefore, the list of incidents stays readable during an alert storm.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import AlertConditions, parse_conditions
from domain.core.types.base import get_column_values
from domain.incidents.alert_links import LinkedAlert
from models import IncidentRule

STORM_SIZE = 20
STORM_TIME = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class ActiveRule:
    """An active rule for opening incidents, with its conditions and options."""

    id: int
    name: str
    conditions: AlertConditions
    #: True if the rule's incidents are closed when all of their alerts are resolved.
    closes_when_resolved: bool
    #: True if no pages are sent for open alerts in the rule's acknowledged incidents.
    quiets_alerts: bool
    #: True if the rule also opens incidents for silenced alerts and during maintenance windows.
    opens_when_silenced: bool


def find_active_rules(project_id: int, *, session: Session) -> tuple[ActiveRule, ...]:
    """Return the active rules in the order in which they are applied, oldest first."""
    rows = session.scalars(
        select(IncidentRule)
        .where(IncidentRule.project_id == project_id, IncidentRule.is_active)
        .order_by(IncidentRule.id)
    )
    return tuple(
        ActiveRule(
            **get_column_values(row, ActiveRule) | {"conditions": parse_conditions(row.conditions)}
        )
        for row in rows
    )


@dataclass(frozen=True, kw_only=True)
class FiringAlert:
    """An alert that was opened or whose severity was raised."""

    alert: LinkedAlert
    urgency: int
    #: True if a later report raised the severity.
    is_raised: bool = False
    #: ID of the open incident that the alert is linked to, or None.
    incident_id: int | None
    #: First rule whose conditions the alert meets, or None.
    rule: ActiveRule | None


@dataclass
class RecentRuleIncidents:
    """The incidents that a rule has opened within STORM_TIME."""

    count: int = 0
    #: ID of the newest incident if it is open, or an incident that will be opened.
    newest: "int | PlannedIncident | None" = None


@dataclass(eq=False)
class PlannedIncident:
    """An incident that a rule opens, with its alerts. The first alert determines the title."""

    rule: ActiveRule
    alerts: list[LinkedAlert]
    urgency: int


@dataclass
class PlannedJoin:
    """Alerts that join an open incident."""

    #: Alerts with a fingerprint that the incident holds.
    alerts_with_held_fingerprint: list[LinkedAlert] = field(default_factory=list)
    #: Alerts that exceed the limit for the rule `rule_name`.
    over_limit: list[LinkedAlert] = field(default_factory=list)
    rule_name: str = ""
    #: Highest urgency of alerts that exceed the limit, or of linked alerts whose severity was
    #: raised.
    urgency: int = 0


@dataclass
class IncidentPlan:
    """The incidents to open, and the alerts that join existing incidents."""

    openings: list[PlannedIncident] = field(default_factory=list)
    #: Alerts that join incidents, by incident ID.
    joinings: defaultdict[int, PlannedJoin] = field(
        default_factory=lambda: defaultdict(PlannedJoin)
    )


def plan_incidents(
    alerts: Sequence[FiringAlert],
    holders: Mapping[bytes, int],
    states: Mapping[int, RecentRuleIncidents],
) -> IncidentPlan:
    """Plan the incidents for firing alerts, in order.

    `holders` maps fingerprints to the IDs of open incidents. `states` maps rule IDs to the recent
    incidents of the rules, and is updated.
    """
    planned = IncidentPlan()
    held: dict[bytes, int | PlannedIncident] = dict(holders)
    for each in alerts:
        if each.incident_id is not None:
            if each.is_raised:
                joining = planned.joinings[each.incident_id]
                joining.urgency = max(joining.urgency, each.urgency)
            continue
        fingerprint = each.alert.fingerprint
        target = held.get(fingerprint) if fingerprint is not None else None
        if isinstance(target, PlannedIncident):
            target.alerts.append(each.alert)
        elif target is not None:
            planned.joinings[target].alerts_with_held_fingerprint.append(each.alert)
        elif each.rule is not None:
            target = _open_or_join_incident(planned, each, each.rule, states[each.rule.id])
        if target is not None and fingerprint is not None:
            held.setdefault(fingerprint, target)
    return planned


def _open_or_join_incident(
    incident_plan: IncidentPlan,
    firing_alert: FiringAlert,
    rule: ActiveRule,
    state: RecentRuleIncidents,
) -> int | PlannedIncident:
    newest = state.newest
    if state.count < STORM_SIZE or newest is None:
        newest = PlannedIncident(rule, [firing_alert.alert], firing_alert.urgency)
        incident_plan.openings.append(newest)
        state.count += 1
        state.newest = newest
    elif isinstance(newest, PlannedIncident):
        newest.alerts.append(firing_alert.alert)
        newest.urgency = max(newest.urgency, firing_alert.urgency)
    else:
        joining = incident_plan.joinings[newest]
        joining.over_limit.append(firing_alert.alert)
        joining.rule_name = rule.name
        joining.urgency = max(joining.urgency, firing_alert.urgency)
    return newest
