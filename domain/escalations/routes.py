"""Routes of a project: which alerts go to which policy. The first route that fits decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.reading.text import storable
from domain.database.paging import LARGEST_ID
from domain.errors import InvalidError, NotFoundError
from domain.escalations.policies import lock_rules
from models import AlertRoute, EscalationPolicy

LONGEST_NAME = 255
#: Of a project.
MOST_ROUTES = 100


@dataclass(frozen=True, kw_only=True)
class RouteDraft:
    """What a route is made of."""

    name: str
    conditions: Conditions
    #: None: alerts that fit page nobody.
    policy_id: int | None
    #: From 1; None for the last place, or for the present one.
    position: int | None = None


@dataclass(frozen=True, kw_only=True)
class RouteView:
    """A route."""

    id: int
    name: str
    position: int
    conditions: Conditions
    policy_id: int | None
    policy_name: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def sentence(self) -> str:
        """Which alerts it is about, and what becomes of them."""
        what = f"go to {self.policy_name}" if self.policy_id else "page nobody"
        return f"{conditions_words(self.conditions)} {what}."


def conditions_words(conditions: Conditions) -> str:
    """Return which alerts meet conditions, as the subject of a sentence."""
    severities = f"{_either(conditions.severities)} alerts" if conditions.severities else "Alerts"
    parts = [severities[0].upper() + severities[1:]]
    if conditions.environments:
        parts.append(f"of environment {_either(conditions.environments)}")
    if conditions.services:
        parts.append(f"of service {_either(conditions.services)}")
    if conditions.labels:
        parts.append(f"with {conditions.labels_text}")
    return " ".join(parts) if len(parts) > 1 or conditions.severities else "All alerts"


def _either(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _rows(project_id: int, *, session: Session) -> list[AlertRoute]:
    return list(
        session.scalars(
            select(AlertRoute)
            .where(AlertRoute.project_id == project_id)
            .order_by(AlertRoute.position, AlertRoute.id)
            .execution_options(populate_existing=True)
        )
    )


def all_routes(project_id: int, *, session: Session) -> Sequence[RouteView]:
    """Return all routes of a project in order; there are at most MOST_ROUTES."""
    names = _policy_names(project_id, session=session)
    return [_view(row, names) for row in _rows(project_id, session=session)]


def _policy_names(project_id: int, *, session: Session) -> Mapping[int, str]:
    rows = session.execute(
        select(EscalationPolicy.id, EscalationPolicy.name).where(
            EscalationPolicy.project_id == project_id
        )
    )
    return dict(rows.all())


def _view(row: AlertRoute, policies: Mapping[int, str]) -> RouteView:
    return RouteView(
        id=row.id,
        name=row.name,
        position=row.position,
        conditions=conditions_from(row.conditions),
        policy_id=row.policy_id,
        policy_name=None if row.policy_id is None else policies.get(row.policy_id),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def get_route(project_id: int, route_id: int, *, session: Session) -> RouteView:
    """Return a route of a project, or raise NotFoundError."""
    row = _get(project_id, route_id, session=session)
    return _view(row, _policy_names(project_id, session=session))


def _get(project_id: int, route_id: int, *, session: Session) -> AlertRoute:
    row = session.get(AlertRoute, route_id) if route_id <= LARGEST_ID else None
    if row is None or row.project_id != project_id:
        message = "Alert route not found in this project."
        raise NotFoundError(message)
    return row


def create_route(
    project_id: int, draft: RouteDraft, *, session: Session, now: datetime
) -> RouteView:
    """Create a route; raise InvalidError or NotFoundError."""
    lock_rules(project_id, session=session)
    rows = _rows(project_id, session=session)
    if len(rows) >= MOST_ROUTES:
        message = f"A project has at most {MOST_ROUTES} routes."
        raise InvalidError(message)
    row = AlertRoute(project_id=project_id, created_at=now, position=len(rows) + 1)
    _fill(row, draft, session=session, now=now)
    session.add(row)
    _place(rows, row, draft.position or len(rows) + 1)
    session.flush()
    return _view(row, _policy_names(project_id, session=session))


def change_route(
    project_id: int, route_id: int, draft: RouteDraft, *, session: Session, now: datetime
) -> RouteView:
    """Replace a route; raise InvalidError or NotFoundError."""
    lock_rules(project_id, session=session)
    row = _get(project_id, route_id, session=session)
    rows = [each for each in _rows(project_id, session=session) if each.id != route_id]
    _fill(row, draft, session=session, now=now)
    _place(rows, row, draft.position or row.position)
    session.flush()
    return _view(row, _policy_names(project_id, session=session))


def move_route(project_id: int, route_id: int, position: int, *, session: Session) -> RouteView:
    """Move a route to another place; one beyond the last means the last."""
    lock_rules(project_id, session=session)
    row = _get(project_id, route_id, session=session)
    rows = [each for each in _rows(project_id, session=session) if each.id != route_id]
    _place(rows, row, position)
    session.flush()
    return _view(row, _policy_names(project_id, session=session))


def delete_route(project_id: int, route_id: int, *, session: Session) -> RouteView:
    """Delete a route, or raise NotFoundError; the routes after it move up."""
    lock_rules(project_id, session=session)
    row = _get(project_id, route_id, session=session)
    view = _view(row, _policy_names(project_id, session=session))
    rows = [each for each in _rows(project_id, session=session) if each.id != route_id]
    session.delete(row)
    _number(rows)
    session.flush()
    return view


def _fill(row: AlertRoute, draft: RouteDraft, *, session: Session, now: datetime) -> None:
    row.name = _checked(draft.name)
    row.conditions = draft.conditions.to_json()
    row.policy_id = _known_policy(row.project_id, draft.policy_id, session=session)
    row.updated_at = now


def _known_policy(project_id: int, policy_id: int | None, *, session: Session) -> int | None:
    if policy_id is None:
        return None
    if policy_id not in _policy_names(project_id, session=session):
        message = "Escalation policy not found in this project."
        raise InvalidError(message, field="escalation_policy_id")
    return policy_id


def _place(others: list[AlertRoute], row: AlertRoute, position: int) -> None:
    others.insert(max(position, 1) - 1, row)
    _number(others)


def _number(rows: Sequence[AlertRoute]) -> None:
    for position, row in enumerate(rows, 1):
        row.position = position


def _checked(name: str) -> str:
    kept = storable(name).strip()
    if not kept or not kept.isprintable():
        message = "Enter a name with letters, digits or symbols, such as Production."
        raise InvalidError(message, field="name")
    if len(kept) > LONGEST_NAME:
        message = f"A name has at most {LONGEST_NAME} characters."
        raise InvalidError(message, field="name")
    return kept
