"""Says in words when a maintenance window recurs."""

from domain.maintenance_windows.recurrence import WEEKDAYS, Frequency, Recurrence

_UNITS = {Frequency.DAILY: "day", Frequency.WEEKLY: "week", Frequency.MONTHLY: "month"}
_FROM_THE_END = {-1: "last", -2: "second to last", -3: "third to last", -4: "fourth to last"}
_FROM_THE_BEGINNING = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
_ORDINALS = {**_FROM_THE_END, **_FROM_THE_BEGINNING, -5: "fifth to last"}


def in_words(rule: Recurrence) -> str:
    """Return for example `every 2 weeks on Saturday and Sunday, until 2026-12-31`."""
    unit = _UNITS[rule.frequency]
    every = f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"
    days = [_weekday(each) for each in rule.by_day] or [_month_day(n) for n in rule.by_month_day]
    on = f" on {_listed(days)}" if days else ""
    until = f", until {rule.until.isoformat()}" if rule.until else ""
    return f"{every}{on}{until}"


def _weekday(text: str) -> str:
    name = WEEKDAYS[text[-2:]]
    return f"the {_ORDINALS[int(text[:-2])]} {name}" if text[:-2] else name


def _month_day(number: int) -> str:
    if number > 0:
        return f"day {number}"
    return "the last day" if number == -1 else f"day {-number} from the end"


def _listed(words: list[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last
