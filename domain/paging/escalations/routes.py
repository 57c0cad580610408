"""The routes of projects and groups, which assign alerts to policies. The first match applies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from, meets
from domain.alerts.matching.labels import AlertLabels
from domain.core.errors import InvalidError
from domain.core.types.base import columns_of
from domain.paging.escalations.types import AlertRoute
from domain.projects.owners import (
    Lineage,
    belongs_to,
    by_user,
    groups_of,
    is_used_by,
    lineages,
)
from domain.projects.views import Holder, ProjectView
from models import AlertRoute as RouteRow
from models import EscalationPolicy


def rows_of(holder: Holder, *, session: Session) -> list[RouteRow]:
    """Return the rows of a holder's own routes in order, freshly loaded."""
    return list(
        session.scalars(
            select(RouteRow)
            .where(belongs_to(RouteRow, holder))
            .order_by(RouteRow.position, RouteRow.id)
            .execution_options(populate_existing=True)
        )
    )


def all_routes(holder: Holder, *, session: Session) -> Sequence[AlertRoute]:
    """Return the routes of a project or group itself, in order."""
    return read_routes(rows_of(holder, session=session), session=session)


def used_routes(used: Lineage, *, session: Session) -> Sequence[AlertRoute]:
    """Return the routes of a project or group and of the groups above, in their order."""
    rows = session.scalars(
        select(RouteRow)
        .where(is_used_by(RouteRow, [used]))
        .order_by(RouteRow.position, RouteRow.id)
        .execution_options(populate_existing=True)
    )
    return read_routes(sorted(rows, key=used.distance), session=session)


def route_names(used: Iterable[Lineage], *, session: Session) -> Mapping[int, str]:
    """Return the names of all routes that apply to projects, by id."""
    found = select(RouteRow.id, RouteRow.name).where(is_used_by(RouteRow, used))
    return dict(session.execute(found).all())


def read_routes(rows: Sequence[RouteRow], *, session: Session) -> Sequence[AlertRoute]:
    """Return the routes of database rows."""
    groups = groups_of(rows, session=session)
    return [
        AlertRoute(
            **columns_of(row, AlertRoute) | conditions_from(row.conditions).to_json(),
            group=groups.get(row.group_id),
            escalation_policy_id=row.policy_id,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy of an alert, and the route that chose it."""

    #: Id of the policy. None if nobody is paged.
    policy_id: int | None = None
    #: Id of the route. None if no route matches.
    route_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The routes that apply to a project, in order, and its default policy."""

    routes: tuple[tuple[Conditions, Choice], ...] = ()
    default_policy_id: int | None = None
    #: True if any policy exists for the project, even if no route uses it.
    has_policies: bool = False

    def choose(self, alert: AlertLabels) -> Choice:
        """Return the choice of the first route that matches, or the default policy."""
        for conditions, choice in self.routes:
            if meets(conditions, alert):
                return choice
        return Choice(self.default_policy_id)

    @property
    def pages_nobody(self) -> bool:
        """Return whether no alert of the project can page anyone."""
        return not self.default_policy_id and not any(each.policy_id for _, each in self.routes)


def pages_nobody(project_id: int, *, session: Session) -> bool:
    """Return whether no alert of a project can page anyone."""
    return read_routing([project_id], session=session)[project_id].pages_nobody


def paging_nobody(projects: Sequence[ProjectView], *, session: Session) -> tuple[ProjectView, ...]:
    """Return the projects whose alerts cannot page anyone; archived projects are left out."""
    live = [each for each in projects if not each.is_archived]
    routing = read_routing([each.id for each in live], session=session)
    return tuple(each for each in live if routing[each.id].pages_nobody)


def read_routing(
    project_ids: Collection[int], *, session: Session, without: int = 0
) -> Mapping[int, Routing]:
    """Return the routing of projects by id, with three queries.

    The routes of a project apply first, then the routes of the groups above it, the nearest group
    first. The default policy belongs to the project, or to the nearest group that has one.
    `without` is the id of a policy to ignore.
    """
    used = lineages(project_ids, session=session)
    routes = by_user(
        session.scalars(
            select(RouteRow)
            .where(is_used_by(RouteRow, used.values()))
            .order_by(RouteRow.position, RouteRow.id)
        ),
        used,
    )
    policies = by_user(
        session.execute(
            select(
                EscalationPolicy.id,
                EscalationPolicy.project_id,
                EscalationPolicy.group_id,
                EscalationPolicy.is_default,
            ).where(is_used_by(EscalationPolicy, used.values()), EscalationPolicy.id != without)
        ),
        used,
    )
    return {
        each: _routing(used[each], routes.get(each, ()), policies.get(each, ()))
        if each in used
        else Routing()
        for each in project_ids
    }


def _routing(
    used: Lineage, routes: Sequence[RouteRow], policies: Sequence[Row[*tuple[Any, ...]]]
) -> Routing:
    asked: list[tuple[Conditions, Choice]] = []
    for row in sorted(routes, key=used.distance):
        # A route that this release does not understand must not stop the routing of all alerts.
        with suppress(InvalidError):
            asked.append((conditions_from(row.conditions), Choice(row.policy_id, row.id)))
    defaults = sorted((each for each in policies if each.is_default), key=used.distance)
    return Routing(
        routes=tuple(asked),
        default_policy_id=defaults[0].id if defaults else None,
        has_policies=bool(policies),
    )
