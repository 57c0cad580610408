"""Notification rules of users: which contacts get pages about which alerts, and after what delay.

If no rule matches, all contacts get the page immediately, so gaps in the rules lose no page.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.time_zones import wall_time, zone
from domain.paging.notifications.recipients import zone_of
from models import ContactRule

DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES
LONGEST_DELAY = timedelta(hours=1)


class Concern(StrEnum):
    """Alerts that a rule applies to. The value is stored."""

    ALL = "all"
    CRITICAL = "critical"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Window:
    """A daily period; it ends on the next day if `end` is not after `start`."""

    #: Start and end in minutes after midnight.
    start: int
    end: int
    #: Weekdays on which it starts: 0 is Monday.
    weekdays: tuple[int, ...]

    @property
    def times(self) -> Iterator[tuple[int, int]]:
        """Yield the periods in minutes of a week that starts on Monday.

        A period may end in the next week.
        """
        length = (self.end - self.start) % DAY_MINUTES or DAY_MINUTES
        for day in self.weekdays:
            begin = day * DAY_MINUTES + self.start
            yield begin, begin + length

    def covers(self, minute: int) -> bool:
        """Return whether the window contains a minute of the week."""
        return any(
            begin <= minute < end or begin <= minute + WEEK_MINUTES < end
            for begin, end in self.times
        )


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A contact, the alerts that it is notified of, and the delay in minutes."""

    contact_id: int
    concern: Concern
    delay: int
    #: Period in which the rule applies. None for any time.
    only: Window | None = None

    def fits(self, concern: Concern, minute: int) -> bool:
        """Return whether the rule applies to critical or other alerts at a minute of the week."""
        is_about = self.concern in {Concern.ALL, concern}
        return is_about and (self.only is None or self.only.covers(minute))


def rule_of(row: ContactRule) -> Rule:
    """Return the rule of a database row."""
    return Rule(
        contact_id=row.contact_id,
        concern=Concern(row.alerts),
        delay=row.delay_minutes,
        only=None if row.only is None else window_of(row.only),
    )


def window_of(stored: Mapping[str, Any]) -> Window:
    """Return a window from its stored format."""
    weekdays = tuple(stored["weekdays"])
    return Window(start=stored["start"], end=stored["end"], weekdays=weekdays)


@dataclass(frozen=True, kw_only=True)
class PersonRules:
    """The rules of a user, and the current minute of the user's week."""

    rules: Sequence[Rule]
    minute: int

    def told(self, concern: Concern, contacts: Mapping[int, bool]) -> Mapping[int, timedelta]:
        """Return the delays of contacts for pages about critical or other alerts.

        `contacts` maps each contact of the user to whether messages reach it. The rule with the
        shortest delay applies to each contact.
        """
        chosen: dict[int, int] = {}
        for each in self.rules:
            if each.contact_id in contacts and each.fits(concern, self.minute):
                present = chosen.get(each.contact_id, each.delay)
                chosen[each.contact_id] = min(each.delay, present)
        if not any(contacts[each] for each in chosen):
            return dict.fromkeys(contacts, timedelta())
        first = min(chosen.values())
        if not any(contacts[each] for each, delay in chosen.items() if delay == first):
            # All contacts with the shortest delay are failing, so the others do not wait.
            chosen = dict.fromkeys(chosen, first)
        return {each: timedelta(minutes=delay) for each, delay in chosen.items()}


def rules_of(user_id: int, *, session: Session, now: datetime) -> PersonRules | None:
    """Return the rules of a user, or None if there are none."""
    rows = session.scalars(
        select(ContactRule).where(ContactRule.user_id == user_id).order_by(ContactRule.id)
    ).all()
    if not rows:
        return None
    local = wall_time(now, zone(zone_of(user_id, session=session)))
    minute = local.weekday() * DAY_MINUTES + local.hour * 60 + local.minute
    return PersonRules(rules=[rule_of(each) for each in rows], minute=minute)


def first_delays(
    rules: Collection[Rule], concern: Concern
) -> Sequence[tuple[int, int, int | None]]:
    """Return the delay of the first notification, by periods of the week.

    Each item has the start and end in minutes of the week, and the delay in minutes. The delay is
    None if no rule applies. Items are in order, and the delays of adjacent items differ.
    """
    own = [each for each in rules if each.concern in {Concern.ALL, concern}]
    times = [time for each in own if each.only for time in each.only.times]
    edges = sorted({0, WEEK_MINUTES, *(edge % WEEK_MINUTES for time in times for edge in time)})
    found: list[tuple[int, int, int | None]] = []
    for edge, end in pairwise(edges):
        first = min((each.delay for each in own if each.fits(concern, edge)), default=None)
        is_same = bool(found) and found[-1][2] == first
        begin = found.pop()[0] if is_same else edge
        found.append((begin, end, first))
    return found
