"""Which policy an alert goes to: pure, for escalations and dry runs alike."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from, meets
from domain.alerts.matching.labels import AlertLabels
from domain.errors import InvalidError
from models import AlertRoute, EscalationPolicy


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy that an alert goes to, and the route that leads there."""

    #: None: nobody is paged.
    policy_id: int | None = None
    #: None: no route fits.
    route_id: int | None = None


@dataclass(frozen=True, slots=True)
class _Route:
    id: int
    conditions: Conditions
    policy_id: int | None


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The routes of a project in order, and its default policy."""

    routes: tuple[_Route, ...] = ()
    default_policy_id: int | None = None

    def choose(self, alert: AlertLabels) -> Choice:
        """Return where an alert goes: the first route that fits, else the default policy."""
        for route in self.routes:
            if meets(route.conditions, alert):
                return Choice(route.policy_id, route.id)
        return Choice(self.default_policy_id)

    @property
    def pages_nobody(self) -> bool:
        """Return whether no alert of the project can page anybody."""
        return not self.default_policy_id and not any(each.policy_id for each in self.routes)


def pages_nobody(project_id: int, *, session: Session) -> bool:
    """Return whether no alert of a project can page anybody."""
    return read_routing([project_id], session=session)[project_id].pages_nobody


def read_routing(project_ids: Collection[int], *, session: Session) -> Mapping[int, Routing]:
    """Return the routing of projects by id, with two queries."""
    routes: dict[int, list[_Route]] = {}
    for row in session.scalars(
        select(AlertRoute)
        .where(AlertRoute.project_id.in_(project_ids))
        .order_by(AlertRoute.position, AlertRoute.id)
    ):
        # One that this release does not understand must not keep all alerts from their policies.
        with suppress(InvalidError):
            route = _Route(row.id, conditions_from(row.conditions), row.policy_id)
            routes.setdefault(row.project_id, []).append(route)
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
