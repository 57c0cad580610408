"""Decides what becomes of alerts that fire: which incident they join, and which they open.

Pure: the caller has looked up what is known, and stores what is decided.

Each alert opens an incident of its own, as in GitLab, with two exceptions. An alert whose
fingerprint an open incident holds joins that. And a rule that has opened STORM_SIZE incidents
within STORM_TIME puts all further alerts into the newest of them until that is closed, so that a
storm of thousands of alerts is a list that people can read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.core.types.base import columns_of
from domain.incidents.links import LinkedAlert
from models import IncidentRule

STORM_SIZE = 20
STORM_TIME = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class ActiveRule:
    """A rule that opens incidents."""

    id: int
    name: str
    conditions: Conditions
    #: Whether its incidents are closed when all of their alerts are resolved.
    closes_when_resolved: bool
    #: Whether its incidents quiet the alerts that join them.
    quiets_alerts: bool
    #: Whether it opens them for silenced alerts as well, and during maintenance windows.
    opens_when_silenced: bool


def active_rules(project_id: int, *, session: Session) -> tuple[ActiveRule, ...]:
    """Return the rules that are on, in the order in which they are asked: the oldest first."""
    rows = session.scalars(
        select(IncidentRule)
        .where(IncidentRule.project_id == project_id, IncidentRule.is_active)
        .order_by(IncidentRule.id)
    )
    return tuple(
        ActiveRule(**columns_of(row, ActiveRule) | {"conditions": conditions_from(row.conditions)})
        for row in rows
    )


@dataclass(frozen=True, kw_only=True)
class FiringAlert:
    """An alert that has become open or more urgent."""

    alert: LinkedAlert
    urgency: int
    #: Whether a further report has made it more urgent.
    is_raised: bool = False
    #: The open incident that it is linked to, or None.
    incident_id: int | None
    #: The first rule whose conditions it meets, or None.
    rule: ActiveRule | None


@dataclass
class RuleState:
    """What a rule has opened within STORM_TIME."""

    count: int = 0
    #: The newest, if it is open: its id, or one that is about to be opened.
    newest: "int | Opening | None" = None


@dataclass(eq=False)
class Opening:
    """An incident to be opened by a rule, with its alerts; the first one gives it its title."""

    rule: ActiveRule
    alerts: list[LinkedAlert]
    urgency: int


@dataclass
class Joining:
    """Alerts that join an open incident."""

    #: With a fingerprint that the incident holds.
    again: list[LinkedAlert] = field(default_factory=list)
    #: By the storm of a rule, with its name.
    stormy: list[LinkedAlert] = field(default_factory=list)
    rule_name: str = ""
    #: The worst of what came by a storm, or of an alert that the incident has already.
    urgency: int = 0


@dataclass
class Plan:
    """What is to be opened, and what joins which incident."""

    openings: list[Opening] = field(default_factory=list)
    #: By the id of the incident.
    joinings: dict[int, Joining] = field(default_factory=dict)

    def joining(self, incident_id: int) -> Joining:
        """Return what joins an incident, to be added to."""
        return self.joinings.setdefault(incident_id, Joining())


def plan(
    alerts: Sequence[FiringAlert], holders: Mapping[bytes, int], states: Mapping[int, RuleState]
) -> Plan:
    """Return what becomes of alerts, in their order.

    `holders` has the open incident of each fingerprint, `states` those of rules by their id; the
    states are changed.
    """
    planned = Plan()
    held: dict[bytes, int | Opening] = dict(holders)
    for each in alerts:
        if each.incident_id is not None:
            if each.is_raised:
                joining = planned.joining(each.incident_id)
                joining.urgency = max(joining.urgency, each.urgency)
            continue
        fingerprint = each.alert.fingerprint
        holder = held.get(fingerprint) if fingerprint is not None else None
        target = _join(planned, holder, each) if holder is not None else None
        if target is None and each.rule is not None:
            target = _open(planned, each, each.rule, states[each.rule.id])
        if target is not None and fingerprint is not None:
            held.setdefault(fingerprint, target)
    return planned


def _join(planned: Plan, holder: int | Opening, each: FiringAlert) -> int | Opening:
    if isinstance(holder, Opening):
        holder.alerts.append(each.alert)
    else:
        planned.joining(holder).again.append(each.alert)
    return holder


def _open(planned: Plan, each: FiringAlert, rule: ActiveRule, state: RuleState) -> int | Opening:
    if state.count >= STORM_SIZE and state.newest is not None:
        return _gather(planned, each, rule, state.newest)
    opening = Opening(rule, [each.alert], each.urgency)
    planned.openings.append(opening)
    state.count += 1
    state.newest = opening
    return opening


def _gather(
    planned: Plan, each: FiringAlert, rule: ActiveRule, newest: int | Opening
) -> int | Opening:
    if isinstance(newest, Opening):
        newest.alerts.append(each.alert)
        newest.urgency = max(newest.urgency, each.urgency)
        return newest
    joining = planned.joining(newest)
    joining.stormy.append(each.alert)
    joining.rule_name = rule.name
    joining.urgency = max(joining.urgency, each.urgency)
    return newest
