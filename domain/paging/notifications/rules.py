"""Notification rules of users, which select the contacts and delays for pages about alerts.

If no rule matches, a page is sent to all contacts immediately, so that gaps in the rules never
cause a lost page.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.time_zones import convert_to_local, get_zone
from domain.paging.notifications.recipients import get_user_time_zone
from models import ContactRule

MINUTES_PER_DAY = 24 * 60
MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY
MAX_RULE_DELAY = timedelta(hours=1)


class AlertSelection(StrEnum):
    """The alerts that a rule applies to. The values are stored in the database."""

    ALL = "all"
    CRITICAL = "critical"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class TimeWindow:
    """A daily period, which ends on the next day if `end` is not after `start`."""

    #: Start and end in minutes after midnight.
    start: int
    end: int
    #: Weekdays on which the period starts: 0 is Monday.
    weekdays: tuple[int, ...]

    @property
    def minute_ranges(self) -> Iterator[tuple[int, int]]:
        """Start and end of each period, in minutes after Monday 00:00.

        A period may end in the next week.
        """
        length = (self.end - self.start) % MINUTES_PER_DAY or MINUTES_PER_DAY
        for day in self.weekdays:
            begin = day * MINUTES_PER_DAY + self.start
            yield begin, begin + length

    def covers_minute(self, minute: int) -> bool:
        """Return whether the window contains a minute of the week."""
        return any(
            begin <= minute < end or begin <= minute + MINUTES_PER_WEEK < end
            for begin, end in self.minute_ranges
        )


@dataclass(frozen=True, kw_only=True)
class NotificationRule:
    """A rule that sends pages about certain alerts to a contact after a delay in minutes."""

    contact_id: int
    alert_selection: AlertSelection
    delay: int
    #: Period in which the rule applies. None if the rule always applies.
    only: TimeWindow | None = None

    def is_applicable(self, alert_selection: AlertSelection, minute: int) -> bool:
        """Return whether the rule applies to critical or other alerts at a given time.

        `minute` is the minute of the week, and `alert_selection` is `CRITICAL` or `OTHER`.
        """
        is_about = self.alert_selection in {AlertSelection.ALL, alert_selection}
        return is_about and (self.only is None or self.only.covers_minute(minute))


def build_rule(row: ContactRule) -> NotificationRule:
    """Build a rule from a database row."""
    return NotificationRule(
        contact_id=row.contact_id,
        alert_selection=AlertSelection(row.alerts),
        delay=row.delay_minutes,
        only=TimeWindow(**{**row.only, "weekdays": tuple(row.only["weekdays"])})
        if row.only is not None
        else None,
    )


@dataclass(frozen=True, kw_only=True)
class UserRules:
    """The rules of a user, and the current minute of the week in the user's time zone."""

    rules: Sequence[NotificationRule]
    minute: int

    def find_contact_delays(
        self, alert_selection: AlertSelection, contacts: Mapping[int, bool]
    ) -> Mapping[int, timedelta]:
        """Return the delays of contacts for pages about critical or about other alerts.

        `contacts` maps the ID of each of the user's contacts to True if messages reach the contact.
        If several rules apply to a contact, the shortest delay is used.
        """
        chosen: dict[int, int] = {}
        for each in self.rules:
            if each.contact_id in contacts and each.is_applicable(alert_selection, self.minute):
                present = chosen.get(each.contact_id, each.delay)
                chosen[each.contact_id] = min(each.delay, present)
        if not any(contacts[each] for each in chosen):
            return dict.fromkeys(contacts, timedelta())
        first = min(chosen.values())
        if not any(contacts[each] for each, delay in chosen.items() if delay == first):
            # All contacts with the shortest delay are failing, so messages to other contacts are
            # not delayed.
            chosen = dict.fromkeys(chosen, first)
        return {each: timedelta(minutes=delay) for each, delay in chosen.items()}


def find_user_rules(user_id: int, *, session: Session, now: datetime) -> UserRules | None:
    """Return the rules of a user, or None if the user has no rules."""
    rows = session.scalars(
        select(ContactRule).where(ContactRule.user_id == user_id).order_by(ContactRule.id)
    ).all()
    if not rows:
        return None
    local = convert_to_local(now, get_zone(get_user_time_zone(user_id, session=session)))
    minute = local.weekday() * MINUTES_PER_DAY + local.hour * 60 + local.minute
    return UserRules(rules=[build_rule(each) for each in rows], minute=minute)


def find_first_delays(
    rules: Collection[NotificationRule], alert_selection: AlertSelection
) -> Sequence[tuple[int, int, int | None]]:
    """Return the delay of the first notification for each period of the week.

    Each item contains the start and end of a period in minutes of the week, and the delay in
    minutes. The delay is None if no rule applies. Items are in order, and the delays of adjacent
    items differ.
    """
    own = [each for each in rules if each.alert_selection in {AlertSelection.ALL, alert_selection}]
    times = [time for each in own if each.only for time in each.only.minute_ranges]
    edges = sorted(
        {0, MINUTES_PER_WEEK, *(edge % MINUTES_PER_WEEK for time in times for edge in time)}
    )
    found: list[tuple[int, int, int | None]] = []
    for edge, end in pairwise(edges):
        first = min(
            (each.delay for each in own if each.is_applicable(alert_selection, edge)), default=None
        )
        is_same = bool(found) and found[-1][2] == first
        begin = found.pop()[0] if is_same else edge
        found.append((begin, end, first))
    return found
