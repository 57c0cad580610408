"""Routes of projects and groups, which assign alerts to policies.

The first route that matches an alert applies.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from domain.alerts.matching.alert_labels import AlertLabels
from domain.alerts.matching.conditions import AlertConditions, meets_conditions, parse_conditions
from domain.core.errors import InvalidError
from domain.core.types.base import get_column_values
from domain.paging.escalations.types import AlertRoute
from domain.projects.row_ownership import (
    GroupChain,
    build_owner_match_condition,
    build_used_by_condition,
    find_group_chains,
    find_owner_group_paths,
    group_rows_by_project,
)
from domain.projects.views import ProjectOrGroup, ProjectView
from models import AlertRoute as RouteRow
from models import EscalationPolicy


def list_route_rows(holder: ProjectOrGroup, *, session: Session) -> list[RouteRow]:
    """Load the current routes of a project or group from the database, in order."""
    return list(
        session.scalars(
            select(RouteRow)
            .where(build_owner_match_condition(RouteRow, holder))
            .order_by(RouteRow.position, RouteRow.id)
            .execution_options(populate_existing=True)
        )
    )


def list_own_routes(holder: ProjectOrGroup, *, session: Session) -> Sequence[AlertRoute]:
    """Return the routes owned by a project or group, in order."""
    return build_routes(list_route_rows(holder, session=session), session=session)


def list_applicable_routes(group_chain: GroupChain, *, session: Session) -> Sequence[AlertRoute]:
    """Return the routes of a project or group and of its ancestor groups, in order."""
    rows = session.scalars(
        select(RouteRow)
        .where(build_used_by_condition(RouteRow, [group_chain]))
        .order_by(RouteRow.position, RouteRow.id)
        .execution_options(populate_existing=True)
    )
    return build_routes(sorted(rows, key=group_chain.count_levels_to_owner), session=session)


def find_route_names(group_chains: Iterable[GroupChain], *, session: Session) -> Mapping[int, str]:
    """Return the names of all routes that apply to projects, by route ID."""
    found = select(RouteRow.id, RouteRow.name).where(
        build_used_by_condition(RouteRow, group_chains)
    )
    return dict(session.execute(found).all())


def build_routes(rows: Sequence[RouteRow], *, session: Session) -> Sequence[AlertRoute]:
    """Build routes from database rows."""
    groups = find_owner_group_paths(rows, session=session)
    return [
        AlertRoute(
            **get_column_values(row, AlertRoute) | parse_conditions(row.conditions).to_json(),
            group=groups.get(row.group_id),
            escalation_policy_id=row.policy_id,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """The policy of an alert, and the route that chose it."""

    #: ID of the policy. None if nobody is paged.
    policy_id: int | None = None
    #: ID of the route. None if no route matches.
    route_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class AlertRouting:
    """The routes that apply to a project, in order, and the default policy of the project."""

    routes: tuple[tuple[AlertConditions, PolicyChoice], ...] = ()
    default_policy_id: int | None = None
    #: True if any policy exists for the project, even if no route uses it.
    has_policies: bool = False

    def choose_policy(self, alert: AlertLabels) -> PolicyChoice:
        """Return the policy of the first route that matches an alert, or the default policy."""
        for conditions, choice in self.routes:
            if meets_conditions(conditions, alert):
                return choice
        return PolicyChoice(self.default_policy_id)

    @property
    def has_no_policy(self) -> bool:
        """True if no alert in the project can page anyone."""
        return not self.default_policy_id and not any(each.policy_id for _, each in self.routes)


def has_no_applicable_policy(project_id: int, *, session: Session) -> bool:
    """Return whether no alert in a project can page anyone."""
    return load_routing([project_id], session=session)[project_id].has_no_policy


def find_projects_without_policy(
    projects: Sequence[ProjectView], *, session: Session
) -> tuple[ProjectView, ...]:
    """Return the projects whose alerts cannot page anyone, except archived projects."""
    live = [each for each in projects if not each.is_archived]
    routing = load_routing([each.id for each in live], session=session)
    return tuple(each for each in live if routing[each.id].has_no_policy)


def load_routing(
    project_ids: Collection[int], *, session: Session, without: int = 0
) -> Mapping[int, AlertRouting]:
    """Return the alert routing of projects, by project ID.

    The routes of a project apply first, and then the routes of its ancestor groups, starting with
    the nearest group. The default policy belongs to the project, or to the nearest group with a
    default policy. `without` is the ID of a policy to ignore. The function runs three queries.
    """
    used = find_group_chains(project_ids, session=session)
    routes = group_rows_by_project(
        session.scalars(
            select(RouteRow)
            .where(build_used_by_condition(RouteRow, used.values()))
            .order_by(RouteRow.position, RouteRow.id)
        ),
        used,
    )
    policies = group_rows_by_project(
        session.execute(
            select(
                EscalationPolicy.id,
                EscalationPolicy.project_id,
                EscalationPolicy.group_id,
                EscalationPolicy.is_default,
            ).where(
                build_used_by_condition(EscalationPolicy, used.values()),
                EscalationPolicy.id != without,
            )
        ),
        used,
    )
    return {
        each: _build_routing(used[each], routes.get(each, ()), policies.get(each, ()))
        if each in used
        else AlertRouting()
        for each in project_ids
    }


def _build_routing(
    group_chain: GroupChain, routes: Sequence[RouteRow], policies: Sequence[Row[*tuple[Any, ...]]]
) -> AlertRouting:
    asked: list[tuple[AlertConditions, PolicyChoice]] = []
    for row in sorted(routes, key=group_chain.count_levels_to_owner):
        # An invalid route, such as a route from a later release, must not stop the routing of all
        # alerts.
        with suppress(InvalidError):
            asked.append((parse_conditions(row.conditions), PolicyChoice(row.policy_id, row.id)))
    defaults = sorted(
        (each for each in policies if each.is_default), key=group_chain.count_levels_to_owner
    )
    return AlertRouting(
        routes=tuple(asked),
        default_policy_id=defaults[0].id if defaults else None,
        has_policies=bool(policies),
    )
