"""Reports the scheduled changes that affect the counted calls of consumers.

The schedule is applied when counts are read, so a newly announced change is also found in earlier
calls. Matches that depend on parameter values were stored with the count.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Select, cast, func, or_, select
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.core.types.base import get_column_values
from domain.projects.views import Viewer
from domain.projects.visibility_sql import has_role_in_project, select_groups_with_role
from domain.releases.call_matches import find_call_matches
from domain.releases.changes import CallPattern, Certainty, Change, Interface, ReleaseChangeKind
from domain.releases.conditions import ParameterGiven, ParameterMissing
from domain.releases.schedule import CHANGES_BY_ID, SCHEDULE
from domain.releases.usage.call_counts import UNKNOWN_NAME, UsageSignature
from domain.releases.usage.consumers import (
    CallerKey,
    ConsumerKind,
    ConsumerView,
    build_consumer_lookup,
)
from domain.releases.version import Release
from models import Application, Bot, CallCount, CallSignature, Project

_PARAMETER_PLACEHOLDER = "given"
#: Minimum number of calls per day for which a rate limit is relevant. With fewer calls, the rate of
#: a consumer stays below half of the lowest limit per minute.
MIN_CALLS_NEAR_LIMIT = 100
_SCHEDULE_POSITIONS = {change.id: place for place, change in enumerate(SCHEDULE)}


@dataclass(kw_only=True)
class AffectedUsage:
    """A consumer's calls that a change affects."""

    change: Change
    consumer: ConsumerView
    certainty: Certainty
    calls: int
    #: Maximum number of calls on any day.
    busiest: int
    first_at: datetime
    last_at: datetime
    #: IP address of the last call. None if the viewer may not see it.
    last_address: str | None
    #: Number of calls by operation, such as `GET /api/v4/users`.
    operations: dict[str, int] = field(default_factory=dict)

    @property
    def is_sure(self) -> bool:
        """True if the results of the calls definitely change when the change takes effect."""
        return self.certainty is Certainty.SURE

    @property
    def can_affect_consumer(self) -> bool:
        """True unless the change is a rate limit that the consumer makes too few calls to reach."""
        return not self.change.is_rate_limit or self.busiest >= MIN_CALLS_NEAR_LIMIT


@dataclass(frozen=True, kw_only=True)
class UsagePeriod:
    """The first day and the releases that a usage report covers."""

    #: First day of the calls.
    since: date
    #: Running release. Changes in this and earlier releases are included only for calls whose
    #: results definitely change.
    running: Release
    #: Last release whose changes are included. None for all releases.
    until: Release | None = None
    #: True to exclude the changes in the running release and in earlier releases.
    is_ahead: bool = False

    def includes_change(self, change: Change, certainty: Certainty) -> bool:
        """Return whether a change with the given certainty is included."""
        if self.until is not None and not change.applies_in(self.until):
            return False
        if change.applies_in(self.running):
            return not self.is_ahead and certainty is Certainty.SURE
        return True


def find_instance_usage(
    period: UsagePeriod, *, session: Session, now: datetime
) -> Sequence[AffectedUsage]:
    """Return the affected usage of all consumers, ordered by change, then by number of calls."""
    return _find_usage(period, None, session=session, now=now)


def find_user_usage(
    viewer: Viewer, period: UsagePeriod, *, session: Session, now: datetime
) -> Sequence[AffectedUsage]:
    """Return the affected usage of the consumers that a user owns or maintains.

    These are the user's tokens and applications, and the access tokens of projects and groups that
    the user maintains. The usage of an application includes the calls of all its users, without
    their IP addresses.
    """
    found = _find_usage(period, _belongs_to_viewer(viewer), session=session, now=now)
    for use in found:
        if use.consumer.kind is ConsumerKind.APPLICATION:
            use.last_address = None
    return found


class AffectedCallCount(NamedTuple):
    """The number of calls that a change affects, and whether the effect is certain."""

    #: True if the results of some calls definitely change.
    is_sure: bool
    calls: int


def find_affected_call_counts(
    viewer: Viewer, period: UsagePeriod, *, session: Session, now: datetime
) -> Mapping[str, AffectedCallCount]:
    """Return the number of affected calls of a user's consumers, by change ID."""
    found: dict[str, AffectedCallCount] = {}
    for use in find_user_usage(viewer, period, session=session, now=now):
        known = found.get(use.change.id, AffectedCallCount(is_sure=False, calls=0))
        found[use.change.id] = AffectedCallCount(
            known.is_sure or use.is_sure, known.calls + use.calls
        )
    return found


def _belongs_to_viewer(viewer: Viewer) -> ColumnElement[bool]:
    """Return an SQL condition that matches calls by consumers that a user owns or maintains."""
    own_applications = select(Application.id).where(
        Application.owner_id == viewer.user_id, Application.is_instance_wide.is_(False)
    )
    projects = select(Project.id).where(has_role_in_project(viewer, Role.MAINTAINER))
    bots = select(Bot.user_id).where(
        or_(
            Bot.project_id.in_(projects),
            Bot.group_id.in_(select_groups_with_role(viewer, Role.OWNER)),
        )
    )
    is_mine = CallCount.user_id == viewer.user_id
    has_no_application = CallCount.application_id.is_(None)
    return or_(
        has_no_application & (is_mine | CallCount.user_id.in_(bots)),
        CallCount.application_id.in_(own_applications),
    )


class _UsageRow(NamedTuple):
    """The totals of a caller's calls with the same signature."""

    user_id: int | None
    application_id: int | None
    personal_token_id: int | None
    shape_id: int
    calls: int
    busiest: int
    first_at: datetime
    last_at: datetime
    last_address: str | None

    @property
    def caller(self) -> CallerKey:
        return CallerKey(self.user_id, self.application_id, self.personal_token_id)


def _find_usage(
    period: UsagePeriod, whose: ColumnElement[bool] | None, *, session: Session, now: datetime
) -> Sequence[AffectedUsage]:
    shapes = _find_affected_signatures(period, session)
    if not shapes:
        return ()
    statement = _select_usage_rows(shapes, period.since)
    if whose is not None:
        statement = statement.where(whose)
    latest = statement.subquery()
    rows = [
        _UsageRow._make(row[:-1])
        for row in session.execute(select(latest).where(latest.c.place == 1))
    ]
    find_consumer = build_consumer_lookup((row.caller for row in rows), session=session, now=now)
    found: dict[tuple[str, Certainty, ConsumerKind, int | None], AffectedUsage] = {}
    for row in rows:
        shape = shapes[row.shape_id]
        consumer = find_consumer(row.caller)
        for change, certainty in _find_changes_in_period(shape, period):
            key = (change.id, certainty, consumer.kind, consumer.id)
            if key in found:
                _add_usage_row(found[key], row, shape)
            else:
                found[key] = _build_usage(change, consumer, certainty, row, shape)
    return sorted((use for use in found.values() if use.can_affect_consumer), key=_get_sort_key)


def _get_sort_key(use: AffectedUsage) -> tuple[int, bool, int]:
    return _SCHEDULE_POSITIONS[use.change.id], not use.is_sure, -use.calls


def _find_affected_signatures(
    period: UsagePeriod, session: Session
) -> Mapping[int, UsageSignature]:
    columns = (
        CallSignature.method,
        CallSignature.route,
        CallSignature.parameters,
        CallSignature.changes,
    )
    found = {}
    for number, method, route, parameters, changes in session.execute(
        select(CallSignature.id, *columns)
    ):
        shape = UsageSignature(method, route, tuple(parameters.split()), tuple(changes.split()))
        if any(True for _ in _find_changes_in_period(shape, period)):
            found[number] = shape
    return found


def _find_changes_in_period(
    shape: UsageSignature, period: UsagePeriod
) -> Iterator[tuple[Change, Certainty]]:
    for change_id, certainty in find_affecting_changes(shape).items():
        if period.includes_change(CHANGES_BY_ID[change_id], certainty):
            yield CHANGES_BY_ID[change_id], certainty


def _select_usage_rows(shape_ids: Iterable[int], since: date) -> Select[Any]:
    """Select the counts with their totals by caller and call signature.

    The `place` column is 1 for the latest row of each caller and signature.
    """
    same = (
        CallCount.user_id,
        CallCount.application_id,
        CallCount.personal_token_id,
        CallCount.shape_id,
    )
    return select(
        *same,
        # PostgreSQL returns sums with a different type.
        cast(func.sum(CallCount.count).over(partition_by=same), BigInteger),
        func.max(CallCount.count).over(partition_by=same),
        func.min(CallCount.first_at).over(partition_by=same),
        CallCount.last_at,
        CallCount.last_address,
        func.row_number()
        .over(partition_by=same, order_by=(CallCount.last_at.desc(), CallCount.id.desc()))
        .label("place"),
    ).where(CallCount.shape_id.in_(shape_ids), CallCount.day >= since)


def _build_usage(
    change: Change,
    consumer: ConsumerView,
    certainty: Certainty,
    row: _UsageRow,
    shape: UsageSignature,
) -> AffectedUsage:
    return AffectedUsage(
        **get_column_values(row, AffectedUsage),
        change=change,
        consumer=consumer,
        certainty=certainty,
        operations={_format_operation(shape): row.calls},
    )


def _add_usage_row(use: AffectedUsage, row: _UsageRow, shape: UsageSignature) -> None:
    use.calls += row.calls
    use.busiest += row.busiest
    use.first_at = min(use.first_at, row.first_at)
    if row.last_at > use.last_at:
        use.last_at, use.last_address = row.last_at, row.last_address
    operation = _format_operation(shape)
    use.operations[operation] = use.operations.get(operation, 0) + row.calls


def _format_operation(shape: UsageSignature) -> str:
    return f"{shape.method} {shape.route}"


@lru_cache(maxsize=10_000)
def find_affecting_changes(shape: UsageSignature) -> Mapping[str, Certainty]:
    """Return the changes that affect calls with a signature, by change ID, with their certainty."""
    found = {
        change_id: _get_stored_certainty(CHANGES_BY_ID[change_id], shape)
        for change_id in shape.changes
        if change_id in CHANGES_BY_ID
    }
    names = dict.fromkeys(shape.parameters, _PARAMETER_PLACEHOLDER)
    for concern in find_call_matches(shape.method, shape.route):
        certainty = _find_certainty_by_names(concern.change, concern.call, names)
        if certainty is not None and found.get(concern.change.id) is not Certainty.SURE:
            found[concern.change.id] = certainty
    return MappingProxyType(found)


def _get_stored_certainty(change: Change, shape: UsageSignature) -> Certainty:
    """Return the certainty that a change stored with a call signature affects the calls."""
    own = [
        each.call for each in find_call_matches(shape.method, shape.route) if each.change is change
    ]
    is_open = own and all(
        call.when is None and not call.attributes and not _is_operation_removed(change, call)
        for call in own
    )
    return Certainty.POSSIBLE if is_open else Certainty.SURE


def _find_certainty_by_names(
    change: Change, call: CallPattern, names: Mapping[str, str]
) -> Certainty | None:
    """Return the certainty that a change affects calls with the given parameter names.

    Return None if the change does not affect the calls.
    """
    if change.interface is Interface.PAGES:
        return None  # The pattern for web pages also matches URLs of the API.
    if call.when is not None:
        if not isinstance(call.when, ParameterGiven | ParameterMissing) or not call.when(names):
            return None
        # The calls of a shape without stored parameter names may have had the parameter.
        is_open = isinstance(call.when, ParameterMissing) and names.keys() == {UNKNOWN_NAME}
        return Certainty.POSSIBLE if is_open else Certainty.SURE
    if _is_operation_removed(change, call) or not names.keys().isdisjoint(call.attributes):
        return Certainty.SURE
    return Certainty.POSSIBLE


def _is_operation_removed(change: Change, call: CallPattern) -> bool:
    """Return whether a change removes an entire operation, so that every call is affected."""
    return change.kind is ReleaseChangeKind.OPERATION_GONE and not call.fields
