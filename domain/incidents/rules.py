"""Rules: which alerts of a project open an incident."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.alerts.following.followers import Follower, follow
from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.reading.text import storable
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.incidents.links import stop_following
from domain.incidents.rows import lock_incidents
from models import IncidentRule

MOST_RULES = 50
LONGEST_NAME = 255


@dataclass(frozen=True, kw_only=True)
class RuleView:
    """A rule of a project."""

    id: int
    name: str
    conditions: Conditions
    #: Whether its incidents are closed when all of their alerts are resolved.
    closes_when_resolved: bool
    #: Whether it opens them for silenced alerts as well, and during maintenance windows.
    opens_when_silenced: bool
    #: One that is not opens nothing.
    is_active: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class RuleValues:
    """What can be set of a rule."""

    name: str
    conditions: Conditions
    closes_when_resolved: bool = False
    opens_when_silenced: bool = False
    #: None: as it is; a new rule is active.
    is_active: bool | None = None


def list_rules(project_id: int, *, session: Session) -> tuple[RuleView, ...]:
    """Return the rules of a project in the order in which they are asked: the oldest first."""
    rows = session.scalars(
        select(IncidentRule).where(IncidentRule.project_id == project_id).order_by(IncidentRule.id)
    )
    return tuple(map(_view, rows))


def get_rule(project_id: int, rule_id: int, *, session: Session) -> RuleView:
    """Return a rule, or raise NotFoundError."""
    return _view(_get(project_id, rule_id, session=session))


def rule_name(rule_id: int | None, *, session: Session) -> str | None:
    """Return the name of the rule that opened an incident, or None if it is gone."""
    return session.scalar(select(IncidentRule.name).where(IncidentRule.id == rule_id))


def create_rule(
    project_id: int, values: RuleValues, *, session: Session, now: datetime
) -> RuleView:
    """Create a rule for the alerts to come; raise InvalidError, or ConflictError for a name."""
    lock_incidents(project_id, session=session)
    count = select(func.count()).where(IncidentRule.project_id == project_id)
    if (session.scalar(count) or 0) >= MOST_RULES:
        message = f"A project can have at most {MOST_RULES} rules."
        raise InvalidError(message, field="name")
    row = IncidentRule(project_id=project_id, is_active=True, created_at=now)
    _store(row, values, session=session, now=now)
    _follow(project_id, session=session)
    return _view(row)


def change_rule(
    project_id: int, rule_id: int, values: RuleValues, *, session: Session, now: datetime
) -> RuleView:
    """Change a rule; incidents that it opened stay as they are."""
    lock_incidents(project_id, session=session)
    row = _get(project_id, rule_id, session=session)
    _store(row, values, session=session, now=now)
    _follow(project_id, session=session)
    return _view(row)


def switch_rule(
    project_id: int, rule_id: int, *, is_active: bool, session: Session, now: datetime
) -> RuleView:
    """Turn a rule on or off; incidents that it opened stay as they are."""
    lock_incidents(project_id, session=session)
    row = _get(project_id, rule_id, session=session)
    row.is_active, row.updated_at = is_active, now
    session.flush()
    _follow(project_id, session=session)
    return _view(row)


def _follow(project_id: int, *, session: Session) -> None:
    """Follow the alerts of a project for as long as a rule may open incidents."""
    follow(project_id, Follower.INCIDENTS, session=session)
    stop_following(project_id, session=session)


def delete_rule(project_id: int, rule_id: int, *, session: Session) -> RuleView:
    """Delete a rule; incidents that it opened stay."""
    lock_incidents(project_id, session=session)
    view = get_rule(project_id, rule_id, session=session)
    session.execute(delete(IncidentRule).where(IncidentRule.id == rule_id))
    stop_following(project_id, session=session)
    return view


def _get(project_id: int, rule_id: int, *, session: Session) -> IncidentRule:
    row = session.scalars(
        select(IncidentRule).where(
            IncidentRule.project_id == project_id, IncidentRule.id == rule_id
        )
    ).one_or_none()
    if row is None:
        message = f"Incident rule {rule_id} not found in this project."
        raise NotFoundError(message)
    return row


def _store(row: IncidentRule, values: RuleValues, *, session: Session, now: datetime) -> None:
    name = _checked_name(values.name)
    try:
        with session.begin_nested():
            session.add(row)
            row.name = name
            row.conditions = values.conditions.to_json()
            row.closes_when_resolved = values.closes_when_resolved
            row.opens_when_silenced = values.opens_when_silenced
            row.is_active = row.is_active if values.is_active is None else values.is_active
            row.updated_at = now
    except IntegrityError as error:
        message = f"A rule with the name “{name}” already exists."
        raise ConflictError(message, field="name") from error


def _checked_name(name: str) -> str:
    checked = storable(name).strip()
    if not checked or len(checked) > LONGEST_NAME:
        message = f"A name has 1 to {LONGEST_NAME} characters."
        raise InvalidError(message, field="name")
    return checked


def _view(row: IncidentRule) -> RuleView:
    return RuleView(
        id=row.id,
        name=row.name,
        conditions=conditions_from(row.conditions),
        closes_when_resolved=row.closes_when_resolved,
        opens_when_silenced=row.opens_when_silenced,
        is_active=row.is_active,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
