"""Routes of alerts to escalation policies, and their dry run."""

from typing import Annotated, Literal

from pydantic import Field

from domain.escalations.dry_run import DryRun, FoundAlert, PlannedPage
from domain.escalations.routes import RouteView
from web.api.schemas.alerts.alert_conditions import ConditionsBody, ConditionsResource
from web.api.schemas.base import Body, GivenTime, Id, OffsetQuery, RequiredText, Resource, Time

_Position = Annotated[
    int, Field(ge=1, le=1_000, description="From 1; one beyond the last means the last.")
]


class AlertRouteQuery(OffsetQuery):
    """A part of the list, in the order in which routes are asked."""

    order_by: Literal["position"] = "position"
    sort: Literal["asc"] = "asc"


class AlertRouteBody(ConditionsBody):
    """A new route."""

    name: RequiredText
    #: Without a default: a misspelt name must not make a route that pages nobody.
    escalation_policy_id: Id | None = Field(description="null if matching alerts page nobody.")
    position: _Position | None = Field(default=None, description="The last one if it is left out.")


class AlertRouteChange(ConditionsBody):
    """Changes to a route."""

    name: RequiredText | None = None
    escalation_policy_id: Id | None = Field(
        default=None, description="null if matching alerts page nobody."
    )
    position: _Position | None = None


class AlertRoute(ConditionsResource):
    """A route of alerts to an escalation policy."""

    id: int
    name: str
    position: int
    escalation_policy_id: int | None = Field(description="null if matching alerts page nobody.")
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, view: RouteView) -> "AlertRoute":
        """Present a route."""
        return cls(
            id=view.id,
            name=view.name,
            position=view.position,
            escalation_policy_id=view.policy_id,
            **view.conditions.to_json(),
            created_at=view.created_at,
            updated_at=view.updated_at,
        )


class DryRunBody(Body):
    """Which alerts are looked at."""

    since: GivenTime | None = Field(default=None, description="By default a week ago.")
    until: GivenTime | None = Field(default=None, description="By default now.")


class DryRunPage(Resource):
    """Somebody who would have been paged."""

    at: Time
    round: int
    step: int
    user: str | None = Field(description="null for a channel.")
    channel: str | None

    @classmethod
    def of(cls, page: PlannedPage) -> "DryRunPage":
        """Present a page."""
        return cls(
            at=page.at, round=page.round, step=page.step, user=page.user, channel=page.channel
        )


class DryRunAlert(Resource):
    """What would have become of an alert."""

    iid: int
    title: str
    opened_at: Time
    route: str | None = Field(description="null if no route fits.")
    escalation_policy: str | None = Field(description="null if nobody would have been paged.")
    pages: list[DryRunPage]
    notes: list[str] = Field(description="Such as steps that would have reached nobody.")

    @classmethod
    def of(cls, found: FoundAlert) -> "DryRunAlert":
        """Present an alert."""
        return cls(
            iid=found.iid,
            title=found.title,
            opened_at=found.opened_at,
            route=found.route,
            escalation_policy=found.policy,
            pages=[DryRunPage.of(each) for each in found.pages],
            notes=list(found.notes),
        )


class AlertRouteDryRun(Resource):
    """Who would have been paged, and when, with the current routes, policies and schedules."""

    since: Time
    until: Time
    truncated: bool = Field(description="Whether there were more alerts than are looked at.")
    alerts: list[DryRunAlert]

    @classmethod
    def of(cls, run: DryRun) -> "AlertRouteDryRun":
        """Present a dry run."""
        return cls(
            since=run.since,
            until=run.until,
            truncated=run.is_truncated,
            alerts=[DryRunAlert.of(each) for each in run.alerts],
        )
