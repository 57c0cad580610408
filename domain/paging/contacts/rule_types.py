"""Resources and request bodies for notification rules, and descriptions of rules in words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import time, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from domain.core.types.base import Body, Id, Option, Resource, Time, make_fields_optional
from domain.core.types.pagination import OffsetQuery
from domain.paging.notifications.rules import (
    MAX_RULE_DELAY,
    MINUTES_PER_DAY,
    MINUTES_PER_WEEK,
    AlertSelection,
    NotificationRule,
    TimeWindow,
    find_first_delays,
)
from domain.paging.on_call.rotation_syntax import WEEKDAYS, format_restriction, format_time_of_day
from domain.paging.on_call.schedule_plans import Restriction
from domain.paging.on_call.types import NewRestriction, OnCallRestriction

MAX_RULE_DELAY_MINUTES = MAX_RULE_DELAY // timedelta(minutes=1)
ALERT_SELECTION_WORDS: Mapping[AlertSelection, str] = {
    AlertSelection.ALL: "All alerts",
    AlertSelection.CRITICAL: "Critical alerts",
    AlertSelection.OTHER: "Other alerts",
}
_AlertSelectionName = Literal["all", "critical", "other"]
_MINUTES_PER_HOUR = 60
#: Number of minutes after which an escalation treats a page as failed.
_PAGE_FAILURE_MINUTES = 1


class ContactRuleQuery(OffsetQuery):
    """Query parameters for a list of notification rules, sorted from oldest to newest."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class ContactRule(Resource):
    """A rule that sends pages about certain alerts to a contact, optionally after a delay."""

    id: int
    contact_id: int
    alerts: _AlertSelectionName
    delay_minutes: int = Field(
        description="Number of minutes between the page and the message to the contact."
    )
    only: OnCallRestriction | None = Field(
        description="Period in which the rule applies. Null if it always applies."
    )
    sentence: str = Field(description="Summary of the rule.")
    created_at: Time


class NewContactRule(Body):
    """Request body that creates a notification rule."""

    contact_id: Annotated[Id, Option("--contact")] = Field(description="ID of a confirmed contact.")
    alerts: _AlertSelectionName = Field(
        default="all",
        description="Alerts that the rule applies to. `other` means all alerts that are not "
        "critical.",
    )
    delay_minutes: Annotated[int, Field(ge=0, le=MAX_RULE_DELAY_MINUTES), Option("--after")] = (
        Field(
            default=0,
            description=(
                "Number of minutes between the page and the message to the contact. The message "
                "is not sent if someone responds earlier."
            ),
        )
    )
    only: Annotated[NewRestriction | None, Option("--only", null="--at-any-time")] = Field(
        default=None,
        description="Period in which the rule applies, such as `mon-fri 09:00-17:00`, in the "
        "user's time zone. By default, the rule always applies.",
    )


@make_fields_optional
class ContactRuleChange(NewContactRule):
    """Changes to a notification rule. Omitted fields are kept."""


class ContactRuleSummary(Resource):
    """Sentences that describe a user's notification rules, and warnings about gaps in the rules."""

    sentences: list[str] = Field(
        description="Summary of the rules, with one sentence for each kind of alert and period."
    )
    gaps: list[str] = Field(
        description="Warnings about alerts that no rule applies to, and about delayed messages."
    )


def serialize_rule_window(on_call_restriction: OnCallRestriction | None) -> dict[str, Any] | None:
    """Convert the period of a rule to its stored format."""
    if on_call_restriction is None:
        return None
    each = on_call_restriction.restriction
    return {
        "start": _get_minute_of_day(each.start),
        "end": _get_minute_of_day(each.end),
        "weekdays": list(each.weekdays),
    }


def build_rule_window(only: TimeWindow | None) -> OnCallRestriction | None:
    """Return the resource for the period of a rule."""
    if only is None:
        return None
    return OnCallRestriction(
        start_time=_get_time_of_day(only.start),
        end_time=_get_time_of_day(only.end),
        weekdays=tuple(WEEKDAYS[day] for day in only.weekdays),  # type: ignore[misc]
    )


def _get_minute_of_day(time_of_day: time) -> int:
    return time_of_day.hour * _MINUTES_PER_HOUR + time_of_day.minute


def _get_time_of_day(minutes: int) -> time:
    return time(*divmod(minutes % MINUTES_PER_DAY, _MINUTES_PER_HOUR))


def describe_rules(rules: Iterable[NotificationRule], labels: Mapping[int, str]) -> Iterator[str]:
    """Yield sentences that describe rules, grouped by alert selection and period.

    `labels` maps the IDs of contacts to their labels.
    """
    together: dict[tuple[AlertSelection, TimeWindow | None], list[NotificationRule]] = {}
    for each in rules:
        together.setdefault((each.alert_selection, each.only), []).append(each)
    order = list(AlertSelection)
    for (concern, only), some in sorted(together.items(), key=lambda each: order.index(each[0][0])):
        when = f", {_format_window(only)}" if only else ""
        told = []
        for each in sorted(some, key=lambda each: each.delay):
            minutes = f"{each.delay} minute{'' if each.delay == 1 else 's'}"
            delay = f"after {minutes}" if each.delay else "immediately"
            told.append(f"{labels[each.contact_id]} {delay}")
        yield f"{ALERT_SELECTION_WORDS[concern]}{when}: {', then '.join(told)}."


def describe_rule_gaps(rules: Sequence[NotificationRule]) -> Iterator[str]:
    """Yield sentences about alerts without a rule, and about alerts with late notifications."""
    for concern in (AlertSelection.CRITICAL, AlertSelection.OTHER) if rules else ():
        spans = find_first_delays(rules, concern)
        alerts = ALERT_SELECTION_WORDS[concern]
        if missing := [(begin, end) for begin, end, first in spans if first is None]:
            yield (
                f"{alerts}{_format_week_times(missing)}: no rule, so all contacts are notified "
                "immediately."
            )
        late = [
            (begin, end) for begin, end, first in spans if first and first > _PAGE_FAILURE_MINUTES
        ]
        if late:
            yield (
                f"{alerts}{_format_week_times(late)}: no contact is notified in the first minute, "
                "so the next step of the escalation may run first."
            )


def _format_week_times(spans: Sequence[tuple[int, int]]) -> str:
    """Format times of the week in words, with a leading comma.

    Return an empty string for the whole week.
    """
    first, last = spans[0], spans[-1]
    if first == (0, MINUTES_PER_WEEK):
        return ""
    if len(spans) > 1 and first[0] == 0 and last[1] == MINUTES_PER_WEEK:
        # A period that crosses the end of the week is a single period.
        spans = [*spans[1:-1], (last[0], MINUTES_PER_WEEK + first[1])]
    daily: dict[tuple[int, int], list[int]] = {}
    long: list[str] = []
    for begin, end in spans:
        if end - begin <= MINUTES_PER_DAY:
            times = begin % MINUTES_PER_DAY, end % MINUTES_PER_DAY
            daily.setdefault(times, []).append(begin // MINUTES_PER_DAY)
        else:
            long.append(f"{_format_week_minute(begin)} to {_format_week_minute(end)}")
    windows = [
        TimeWindow(start=start, end=end, weekdays=tuple(days))
        for (start, end), days in daily.items()
    ]
    return f", {'; '.join([*map(_format_window, windows), *long])}"


def _format_week_minute(minute: int) -> str:
    day, rest = divmod(minute % MINUTES_PER_WEEK, MINUTES_PER_DAY)
    return f"{WEEKDAYS[day].capitalize()} {format_time_of_day(_get_time_of_day(rest))}"


def _format_window(only: TimeWindow) -> str:
    restriction = Restriction(
        start=_get_time_of_day(only.start), end=_get_time_of_day(only.end), weekdays=only.weekdays
    )
    return format_restriction(restriction)
