"""The stored routes of a project: which alerts go to which policy. The first that fits decides."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import conditions_from
from domain.escalations.types import AlertRoute
from models import AlertRoute as RouteRow


def rows_of(project_id: int, *, session: Session) -> list[RouteRow]:
    """Return the rows of a project's routes in order, as they are stored now."""
    return list(
        session.scalars(
            select(RouteRow)
            .where(RouteRow.project_id == project_id)
            .order_by(RouteRow.position, RouteRow.id)
            .execution_options(populate_existing=True)
        )
    )


def all_routes(project_id: int, *, session: Session) -> Sequence[AlertRoute]:
    """Return all routes of a project in order."""
    return [read_route(row) for row in rows_of(project_id, session=session)]


def read_route(row: RouteRow) -> AlertRoute:
    """Return a row as a route."""
    return AlertRoute(
        **conditions_from(row.conditions).to_json(),
        id=row.id,
        name=row.name,
        position=row.position,
        escalation_policy_id=row.policy_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
