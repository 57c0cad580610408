"""Recurrence rules for maintenance windows, which are a subset of RFC 5545 section 3.3.10.

A window recurs after a number of days, weeks or months, and optionally until an end date. Times are
local: a window that starts at 02:00 starts at this local time in summer and in winter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Any

from dateutil import rrule

from domain.core.errors import InvalidError
from domain.core.word_joining import join_words

MAX_RULE_LENGTH = 200
MAX_INTERVAL = 99
#: Last possible day of a recurrence without an end date.
LAST_RECURRENCE_DAY = date(2199, 12, 31)
_MONTHS_PER_YEAR = 12
_FIFTH_WEEKDAY = 5
_MAX_MONTH_DAYS = 31
_DAY = timedelta(days=1)
#: Names of weekdays by their abbreviations in rules.
WEEKDAY_NAMES = {
    "MO": "Monday",
    "TU": "Tuesday",
    "WE": "Wednesday",
    "TH": "Thursday",
    "FR": "Friday",
    "SA": "Saturday",
    "SU": "Sunday",
}
_BY_DAY_PATTERN = re.compile(r"(-?[1-5])?(MO|TU|WE|TH|FR|SA|SU)")
_UNTIL_PATTERN = re.compile(r"[0-9]{8}")


class Frequency(StrEnum):
    """Unit of the interval between occurrences: days, weeks or months."""

    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"


_RRULE_FREQUENCIES = {
    Frequency.DAILY: rrule.DAILY,
    Frequency.WEEKLY: rrule.WEEKLY,
    Frequency.MONTHLY: rrule.MONTHLY,
}


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """A recurrence rule: a frequency, an interval, days, and an optional last day."""

    frequency: Frequency
    interval: int = 1
    #: Weekdays, such as MO. Weekdays in monthly rules have a number, such as 2TU or -1SU.
    by_day: tuple[str, ...] = ()
    #: Days of the month. Negative days are counted from the end of the month.
    by_month_day: tuple[int, ...] = ()
    #: Last local day on which an occurrence can start, or None.
    until: date | None = None

    @property
    def rule(self) -> str:
        """The rule in the format of RFC 5545."""
        parts = {
            "FREQ": self.frequency.value,
            "INTERVAL": str(self.interval) if self.interval > 1 else "",
            "BYDAY": ",".join(self.by_day),
            "BYMONTHDAY": ",".join(map(str, self.by_month_day)),
            "UNTIL": self.until.strftime("%Y%m%d") if self.until else "",
        }
        return ";".join(f"{name}={value}" for name, value in parts.items() if value)

    def generate_starts(self, first_start: datetime, *, after: datetime) -> Iterator[datetime]:
        """Yield the local start times of occurrences in order, starting shortly before `after`.

        `first_start` is the earliest possible start. Most occurrences before `after` are skipped
        without being computed.
        """
        found: Iterator[datetime] = iter(
            rrule.rrule(
                _RRULE_FREQUENCIES[self.frequency],
                dtstart=self._find_start_near(first_start, after),
                interval=self.interval,
                byweekday=[_build_weekday(each) for each in self.by_day] or None,
                bymonthday=self._list_month_days(first_start) or None,
                until=datetime.combine(self.until or LAST_RECURRENCE_DAY, time.max),
                byhour=first_start.hour,
                byminute=first_start.minute,
                bysecond=0,
            )
        )
        return found

    def _list_month_days(self, first_start: datetime) -> tuple[int, ...]:
        if self.frequency is Frequency.MONTHLY and not (self.by_day or self.by_month_day):
            return (first_start.day,)
        return self.by_month_day

    def _find_start_near(self, first_start: datetime, after: datetime) -> datetime:
        """Return a start close to `after`, a whole number of intervals after `first_start`."""
        if after <= first_start:
            return first_start
        if self.frequency is Frequency.MONTHLY:
            months = (
                (after.year - first_start.year) * _MONTHS_PER_YEAR + after.month - first_start.month
            )
            whole = months - months % self.interval
            if not whole:
                return first_start
            year, month = divmod(
                first_start.year * _MONTHS_PER_YEAR + first_start.month - 1 + whole,
                _MONTHS_PER_YEAR,
            )
            return first_start.replace(year=year, month=month + 1, day=1)
        step = self.interval * (7 if self.frequency is Frequency.WEEKLY else 1) * _DAY
        # Start one interval earlier, since a week may have occurrences on weekdays before the
        # weekday of `first_start`.
        return first_start + max((after - first_start) // step - 1, 0) * step


def _build_weekday(text: str) -> Any:
    found = _BY_DAY_PATTERN.fullmatch(text)
    if found is None:  # The parser has already checked the text.
        raise ValueError(text)
    return rrule.weekday([*WEEKDAY_NAMES].index(found[2]), int(found[1]) if found[1] else None)


def build_monthly_day_rule(first_day: date, *, interval: int, until: date | None) -> Recurrence:
    """Build a rule for the same day in each month.

    Months without this day are skipped.
    """
    return Recurrence(
        frequency=Frequency.MONTHLY, interval=interval, by_month_day=(first_day.day,), until=until
    )


def build_monthly_weekday_rule(first_day: date, *, interval: int, until: date | None) -> Recurrence:
    """Build a rule for the same weekday in each month.

    If the first day is the fifth such weekday of its month, the rule uses the last such weekday of
    each month.
    """
    number = (first_day.day - 1) // 7 + 1
    day = f"{number if number < _FIFTH_WEEKDAY else -1}{tuple(WEEKDAY_NAMES)[first_day.weekday()]}"
    return Recurrence(frequency=Frequency.MONTHLY, interval=interval, by_day=(day,), until=until)


def parse_recurrence_rule(text: str) -> Recurrence:
    """Parse a recurrence rule such as `FREQ=WEEKLY;BYDAY=SU`.

    Raise InvalidError if the rule is not supported.
    """
    if len(text) > MAX_RULE_LENGTH:
        raise _build_rule_error(f"can have at most {MAX_RULE_LENGTH} characters")
    parts = _parse_parts(text.strip().upper().removeprefix("RRULE:"))
    frequency = _parse_frequency(parts.pop("FREQ", ""))
    found = Recurrence(
        frequency=frequency,
        interval=_parse_whole_number(parts.pop("INTERVAL", "1"), "INTERVAL", MAX_INTERVAL),
        by_day=_parse_days(parts.pop("BYDAY", "")),
        by_month_day=_parse_month_days(parts.pop("BYMONTHDAY", "")),
        until=_parse_until(parts.pop("UNTIL", "")),
    )
    if parts.pop("WKST", "MO") != "MO" or parts:
        known = "FREQ, INTERVAL, BYDAY, BYMONTHDAY and UNTIL"
        raise _build_rule_error(f"can only have {known}, and weeks must start on Monday")
    _check_days(found)
    return found


def _build_rule_error(reason: str) -> InvalidError:
    return InvalidError(f"The rule {reason}.", field="rule")


def _parse_parts(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.removesuffix(";").split(";")]
    names = [name for name, _, value in parts if name and value]
    if len(set(names)) < len(parts):
        raise _build_rule_error("must consist of unique parts, such as FREQ=WEEKLY;BYDAY=SU")
    return {name: value for name, _, value in parts}


def _parse_frequency(word: str) -> Frequency:
    if word not in set(Frequency):
        raise _build_rule_error("must contain FREQ=DAILY, FREQ=WEEKLY or FREQ=MONTHLY")
    return Frequency(word)


def _parse_whole_number(text: str, name: str, largest: int) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,3}", text) else 0
    if not 1 <= number <= largest:
        raise _build_rule_error(f"must contain a number from 1 to {largest} for {name}")
    return number


def _parse_days(text: str) -> tuple[str, ...]:
    days = text.split(",") if text else []
    if not all(_BY_DAY_PATTERN.fullmatch(day) for day in days):
        raise _build_rule_error(
            "must have weekdays such as MO,TH for BYDAY, or 2TU or -1SU if monthly"
        )
    return tuple(dict.fromkeys(days))


def _parse_month_days(text: str) -> tuple[int, ...]:
    days = text.split(",") if text else []
    numbers = [int(day) for day in days if re.fullmatch(r"-?[0-9]{1,2}", day)]
    if len(numbers) < len(days) or not all(1 <= abs(day) <= _MAX_MONTH_DAYS for day in numbers):
        raise _build_rule_error("must have days of the month such as 1,15 or -1 for BYMONTHDAY")
    return tuple(dict.fromkeys(numbers))


def _parse_until(text: str) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text) if _UNTIL_PATTERN.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None or day > LAST_RECURRENCE_DAY:
        raise _build_rule_error("must have a local date such as 20271231 for UNTIL")
    return day


def _check_days(rule: Recurrence) -> None:
    """Check that the days of a rule match its frequency.

    Raise InvalidError if they do not match.
    """
    numbered = [len(day) > len("MO") for day in rule.by_day]
    if rule.frequency is not Frequency.MONTHLY:
        if rule.by_month_day or any(numbered):
            raise _build_rule_error("can have days of the month only with FREQ=MONTHLY")
        if rule.frequency is Frequency.DAILY and rule.by_day:
            raise _build_rule_error("can have BYDAY only with FREQ=WEEKLY or FREQ=MONTHLY")
        return
    if rule.by_day and rule.by_month_day:
        raise _build_rule_error("cannot have both BYDAY and BYMONTHDAY")
    if not all(numbered):
        raise _build_rule_error("must have numbered weekdays if monthly, such as 2TU or -1SU")


_UNITS = {Frequency.DAILY: "day", Frequency.WEEKLY: "week", Frequency.MONTHLY: "month"}
_ORDINALS_FROM_END = {-1: "last", -2: "second to last", -3: "third to last", -4: "fourth to last"}
_ORDINALS_FROM_BEGINNING = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
_ORDINALS = {**_ORDINALS_FROM_END, **_ORDINALS_FROM_BEGINNING, -5: "fifth to last"}


def format_recurrence(rule: Recurrence) -> str:
    """Describe a rule in words, such as `every 2 weeks on Saturday, until 2026-12-31`."""
    unit = _UNITS[rule.frequency]
    every = f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"
    days = [_format_weekday(each) for each in rule.by_day] or [
        _format_month_day(n) for n in rule.by_month_day
    ]
    on = f" on {join_words(days)}" if days else ""
    until = f", until {rule.until.isoformat()}" if rule.until else ""
    return f"{every}{on}{until}"


def _format_weekday(text: str) -> str:
    name = WEEKDAY_NAMES[text[-2:]]
    return f"the {_ORDINALS[int(text[:-2])]} {name}" if text[:-2] else name


def _format_month_day(number: int) -> str:
    if number > 0:
        return f"day {number}"
    return "the last day" if number == -1 else f"day {-number} from the end"
