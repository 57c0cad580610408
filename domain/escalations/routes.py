"""The routes of a project: which alerts go to which policy. The first that fits decides."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from, meets
from domain.alerts.matching.labels import AlertLabels
from domain.errors import InvalidError
from domain.escalations.types import AlertRoute
from domain.projects.views import ProjectView
from domain.types.base import columns_of
from models import AlertRoute as RouteRow
from models import EscalationPolicy


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
        **columns_of(row, AlertRoute) | conditions_from(row.conditions).to_json(),
        escalation_policy_id=row.policy_id,
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy that an alert goes to, and the route that leads there."""

    #: None: nobody is paged.
    policy_id: int | None = None
    #: None: no route fits.
    route_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The routes of a project in order, and its default policy."""

    routes: tuple[tuple[Conditions, Choice], ...] = ()
    default_policy_id: int | None = None

    def choose(self, alert: AlertLabels) -> Choice:
        """Return where an alert goes: the first route that fits, else the default policy."""
        for conditions, choice in self.routes:
            if meets(conditions, alert):
                return choice
        return Choice(self.default_policy_id)

    @property
    def pages_nobody(self) -> bool:
        """Return whether no alert of the project can page anybody."""
        return not self.default_policy_id and not any(each.policy_id for _, each in self.routes)


def pages_nobody(project_id: int, *, session: Session) -> bool:
    """Return whether no alert of a project can page anybody."""
    return read_routing([project_id], session=session)[project_id].pages_nobody


def paging_nobody(projects: Sequence[ProjectView], *, session: Session) -> tuple[ProjectView, ...]:
    """Return the projects of which no alert can page anybody, archived ones left out."""
    live = [each for each in projects if not each.is_archived]
    routing = read_routing([each.id for each in live], session=session)
    return tuple(each for each in live if routing[each.id].pages_nobody)


def read_routing(project_ids: Collection[int], *, session: Session) -> Mapping[int, Routing]:
    """Return the routing of projects by id, with two queries."""
    routes: dict[int, list[tuple[Conditions, Choice]]] = {}
    for row in session.scalars(
        select(RouteRow)
        .where(RouteRow.project_id.in_(project_ids))
        .order_by(RouteRow.position, RouteRow.id)
    ):
        # One that this release does not understand must not keep all alerts from their policies.
        with suppress(InvalidError):
            route = conditions_from(row.conditions), Choice(row.policy_id, row.id)
            routes.setdefault(row.project_id or 0, []).append(route)
    usual = session.execute(
        select(EscalationPolicy.project_id, EscalationPolicy.id).where(
            EscalationPolicy.project_id.in_(project_ids), EscalationPolicy.is_default
        )
    )
    defaults = dict(usual.all())
    return {
        each: Routing(routes=tuple(routes.get(each, ())), default_policy_id=defaults.get(each))
        for each in project_ids
    }
