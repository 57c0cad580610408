"""Resources and request bodies of notification rules, and their descriptions in words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import time, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from domain.core.types.base import Body, Id, OffsetQuery, Option, Resource, Time, partial
from domain.paging.notifications.rules import (
    DAY_MINUTES,
    LONGEST_DELAY,
    WEEK_MINUTES,
    Concern,
    Rule,
    Window,
    first_delays,
)
from domain.paging.on_call.rotation_syntax import WEEKDAYS, written_restriction, written_time
from domain.paging.on_call.schedule_values import Restriction
from domain.paging.on_call.types import NewRestriction, OnCallRestriction

MOST_MINUTES = LONGEST_DELAY // timedelta(minutes=1)
CONCERN_WORDS: Mapping[Concern, str] = {
    Concern.ALL: "All alerts",
    Concern.CRITICAL: "Critical alerts",
    Concern.OTHER: "Other alerts",
}
_Concern = Literal["all", "critical", "other"]
_HOUR = 60
#: Time in minutes after which an escalation counts a page as failed.
_PATIENCE = 1


class ContactRuleQuery(OffsetQuery):
    """Parameters of the list of rules, the oldest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class ContactRule(Resource):
    """A notification rule of a contact."""

    id: int
    contact_id: int
    alerts: _Concern
    delay_minutes: int = Field(
        description="Delay of the message after the page is sent, in minutes."
    )
    only: OnCallRestriction | None = Field(
        description="Period in which the rule applies. Null for any time."
    )
    sentence: str = Field(description="Summary of the rule.")
    created_at: Time


class NewContactRule(Body):
    """A new notification rule."""

    contact_id: Annotated[Id, Option("--contact")] = Field(description="Id of a confirmed contact.")
    alerts: _Concern = Field(
        default="all",
        description="Alerts that the rule applies to. `other` stands for all alerts that are not "
        "critical.",
    )
    delay_minutes: Annotated[int, Field(ge=0, le=MOST_MINUTES), Option("--after")] = Field(
        default=0,
        description="Delay of the message after the page is sent, in minutes. The message is not "
        "sent if someone has responded by then.",
    )
    only: Annotated[NewRestriction | None, Option("--only", null="--at-any-time")] = Field(
        default=None,
        description="Period in which the rule applies, such as `mon-fri 09:00-17:00`, in the "
        "user's time zone. The default is any time.",
    )


@partial
class ContactRuleChange(NewContactRule):
    """Changes to a rule; omitted fields are kept."""


class ContactRuleSummary(Resource):
    """Summary of the notification rules of a user."""

    sentences: list[str] = Field(
        description="Summary of the rules, one sentence for each kind of alert and period."
    )
    gaps: list[str] = Field(
        description="Warnings about alerts that no rule applies to, and about delayed messages."
    )


def stored_time(given: OnCallRestriction | None) -> dict[str, Any] | None:
    """Return a period in its stored format."""
    if given is None:
        return None
    each = given.restriction
    return {
        "start": _minutes(each.start),
        "end": _minutes(each.end),
        "weekdays": list(each.weekdays),
    }


def shown_time(only: Window | None) -> OnCallRestriction | None:
    """Return a period as a resource."""
    if only is None:
        return None
    return OnCallRestriction(
        start_time=_clock(only.start),
        end_time=_clock(only.end),
        weekdays=tuple(WEEKDAYS[day] for day in only.weekdays),  # type: ignore[misc]
    )


def _minutes(at: time) -> int:
    return at.hour * _HOUR + at.minute


def _clock(minutes: int) -> time:
    return time(*divmod(minutes % DAY_MINUTES, _HOUR))


def sentences(rules: Iterable[Rule], labels: Mapping[int, str]) -> Iterator[str]:
    """Yield sentences about rules, grouped by alerts and times.

    `labels` maps the ids of contacts to their labels.
    """
    together: dict[tuple[Concern, Window | None], list[Rule]] = {}
    for each in rules:
        together.setdefault((each.concern, each.only), []).append(each)
    order = list(Concern)
    for (concern, only), some in sorted(together.items(), key=lambda each: order.index(each[0][0])):
        when = f", {_window_words(only)}" if only else ""
        told = [
            f"{labels[each.contact_id]} {_delay_words(each.delay)}"
            for each in sorted(some, key=lambda each: each.delay)
        ]
        yield f"{CONCERN_WORDS[concern]}{when}: {', then '.join(told)}."


def _delay_words(minutes: int) -> str:
    if not minutes:
        return "immediately"
    return f"after {minutes} minute{'' if minutes == 1 else 's'}"


def gaps(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield sentences about alerts that no rule covers, and alerts with late notifications."""
    for concern in (Concern.CRITICAL, Concern.OTHER) if rules else ():
        spans = first_delays(rules, concern)
        alerts = CONCERN_WORDS[concern]
        if missing := [(begin, end) for begin, end, first in spans if first is None]:
            yield f"{alerts}{_when(missing)}: no rule, so all contacts are notified immediately."
        late = [(begin, end) for begin, end, first in spans if first and first > _PATIENCE]
        if late:
            yield (
                f"{alerts}{_when(late)}: no contact is notified in the first minute, so the next "
                "step of the escalation may run first."
            )


def _when(spans: Sequence[tuple[int, int]]) -> str:
    """Return times of the week in words after a comma; empty for the whole week."""
    first, last = spans[0], spans[-1]
    if first == (0, WEEK_MINUTES):
        return ""
    if len(spans) > 1 and first[0] == 0 and last[1] == WEEK_MINUTES:
        # A period across the end of the week is a single period.
        spans = [*spans[1:-1], (last[0], WEEK_MINUTES + first[1])]
    daily: dict[tuple[int, int], list[int]] = {}
    long: list[str] = []
    for begin, end in spans:
        if end - begin <= DAY_MINUTES:
            times = begin % DAY_MINUTES, end % DAY_MINUTES
            daily.setdefault(times, []).append(begin // DAY_MINUTES)
        else:
            long.append(f"{_moment(begin)} to {_moment(end)}")
    windows = [
        Window(start=start, end=end, weekdays=tuple(days)) for (start, end), days in daily.items()
    ]
    return f", {'; '.join([*map(_window_words, windows), *long])}"


def _moment(minute: int) -> str:
    day, rest = divmod(minute % WEEK_MINUTES, DAY_MINUTES)
    return f"{WEEKDAYS[day].capitalize()} {written_time(_clock(rest))}"


def _window_words(only: Window) -> str:
    restriction = Restriction(
        start=_clock(only.start), end=_clock(only.end), weekdays=only.weekdays
    )
    return written_restriction(restriction)
