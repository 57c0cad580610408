"""Text format for weekdays, times of day and rotations, such as `weekly alice,bob mon 09:00`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from typing import Any

from domain.core.errors import InvalidError
from domain.paging.on_call.schedule_plans import EVERY_DAY, Cadence, Restriction, TurnUnit

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MIN_WEEKDAY_LETTERS = 3
_TIME_PATTERN = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
#: Patterns for the separators between times or days: dashes, or words such as `to`, and commas.
#: Both patterns include the surrounding spaces.
_DASH_PATTERN, _COMMA_PATTERN = (
    re.compile(r"\s*[\u2010\u2013\u2014-]\s*|\s+(?:to|until)\s+"),
    re.compile(r"\s*,\s*"),
)
_HOUR_PATTERN = r"[0-9]{1,2}(?::[0-9]{2})?\s?(?:[ap]m)?"
_RESTRICTION_PATTERN = re.compile(
    rf"(?:(?P<days>[a-z,-]+)\s+)?(?P<start>{_HOUR_PATTERN})-(?P<end>{_HOUR_PATTERN})"
)
_INFORMAL_TIME_PATTERN = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?\s?([ap]m)?")
_NOON = 12
_WEEKDAY_GROUPS = {
    "weekdays": "mon-fri",
    "workdays": "mon-fri",
    "weekends": "sat-sun",
    "daily": "mon-sun",
}
_WEEKDAY_GROUPS |= {word.removesuffix("s"): days for word, days in _WEEKDAY_GROUPS.items()}
_OPTION_WORDS = frozenset({"from", "layer", "only"})
_TURN_LENGTH_PATTERN = re.compile(r"([0-9]{1,4})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
#: Example of a rotation for error messages and help texts.
ROTATION_EXAMPLE = "weekly alice,bob mon 09:00"


def parse_time_of_day(text: str) -> time:
    """Parse a time of day such as 09:00.

    24:00 stands for midnight. Raise ValueError if the text is not a time of day.
    """
    given = text.strip()
    if given == "24:00":
        return time()
    found = _TIME_PATTERN.fullmatch(given)
    if found is None:
        raise ValueError("must be a time of day like 09:00")
    return time(int(found[1]), int(found[2]))


def parse_informal_time(text: str) -> time:
    """Parse an informal time of day, such as 09:00, 9, 9:30, 5pm or 24.

    Raise ValueError if the text is not a time of day.
    """
    found = _INFORMAL_TIME_PATTERN.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError("must be a time of day like 09:00")
    hour, half = int(found[1]), found[3]
    if half and not 1 <= hour <= _NOON:
        raise ValueError("must be a time of day like 09:00")
    hour = hour % _NOON + (_NOON if half == "pm" else 0) if half else hour
    return parse_time_of_day(f"{hour:02}:{found[2] or '00'}")


def format_time_of_day(moment: time) -> str:
    """Format a time of day, such as `09:00`."""
    return moment.isoformat("minutes")


def parse_weekday(text: str) -> int:
    """Parse a weekday, and return its number, such as 0 for `mon`, `Monday` or `Mondays`.

    Raise ValueError if the text is not a weekday.
    """
    word = text.strip().lower()
    full = ("mondays", "tuesdays", "wednesdays", "thursdays", "fridays", "saturdays", "sundays")
    for number, name in enumerate(full):
        if len(word) >= _MIN_WEEKDAY_LETTERS and name.startswith(word):
            return number
    raise ValueError(f"must be one of {', '.join(WEEKDAYS)}")


def parse_weekdays(text: str) -> tuple[int, ...]:
    """Parse weekdays such as `mon,thu` or `fri-mon`, and return their numbers in order.

    Raise ValueError if the text is invalid.
    """
    parts = (_WEEKDAY_GROUPS.get(part.strip().lower(), part) for part in text.split(","))
    found = {day for part in parts for day in _parse_weekday_range(part)}
    return tuple(sorted(found))


def _parse_weekday_range(text: str) -> Iterator[int]:
    first, dash, last = text.partition("-")
    begin = parse_weekday(first)
    end = parse_weekday(last) if dash else begin
    yield from ((begin + step) % 7 for step in range((end - begin) % 7 + 1))


def format_weekdays(days: Iterable[int]) -> str:
    """Format weekdays, such as `Mon, Thu` or `every day`."""
    chosen = tuple(sorted(days))
    if chosen == EVERY_DAY:
        return "every day"
    return ", ".join(WEEKDAYS[day].capitalize() for day in chosen)


def format_cadence(cadence: Cadence) -> str:
    """Format the handoff times of a rotation, such as `weekly on Mon at 09:00`."""
    length = "every" if cadence.every == 1 else f"every {cadence.every}"
    unit = cadence.unit.removesuffix("s") if cadence.every == 1 else cadence.unit.value
    at = f"at {format_time_of_day(cadence.at)}"
    if cadence.unit is TurnUnit.HOURS:
        return f"{length} {unit}, counted from {format_time_of_day(cadence.at)}"
    if cadence.unit is TurnUnit.WEEKS:
        return f"{length} {unit} on {format_weekdays(cadence.weekdays)} {at}"
    return f"{length} {unit} {at}"


def format_restriction(restriction: Restriction) -> str:
    """Format a restriction, such as `Mon, Tue 09:00 to 17:00`."""
    days = format_weekdays(restriction.weekdays)
    if restriction.start == restriction.end == time():
        return f"{days}, all day"
    return (
        f"{days} {format_time_of_day(restriction.start)} to {format_time_of_day(restriction.end)}"
    )


def parse_restriction(text: str) -> dict[str, Any]:
    """Parse a restriction such as `mon-fri 09:00-17:00`, and return its fields.

    Informal text such as `Mon - Fri, 9 to 17` or `weekdays 9am-5pm` is also accepted. Raise
    ValueError if the text is invalid.
    """
    spaced = _COMMA_PATTERN.sub(
        ",", _DASH_PATTERN.sub("-", text.strip().lower().replace("every day", "daily"))
    )
    # A comma before the times is ignored.
    given = _RESTRICTION_PATTERN.fullmatch(re.sub(r",(?=[0-9])", " ", spaced))
    if given is None:
        raise ValueError("must be a period such as mon-fri 09:00-17:00 or 22:00-06:00")
    days = parse_weekdays(given["days"]) if given["days"] else EVERY_DAY
    return {
        "start_time": parse_informal_time(given["start"]),
        "end_time": parse_informal_time(given["end"]),
        "weekdays": [WEEKDAYS[day] for day in days],
    }


def parse_rotation(text: str) -> dict[str, Any]:
    """Parse the text of a rotation, and return its fields.

    The formats are `daily USERS [TIME]`, `weekly USERS [DAYS] [TIME]` and `every 12h|3d|2w USERS
    [DAYS] [TIME]`. Each format can be followed by `from DATE`, `layer NUMBER` and `only [DAYS]
    TIME-TIME`. Raise InvalidError if the text is invalid.
    """
    try:
        return _RotationParser(text.split()).parse_rotation()
    except (ValueError, IndexError) as error:
        reason = str(error) if isinstance(error, ValueError) else "is not complete"
        message = f'"{text[:80]}" {reason}. Use a rotation such as "{ROTATION_EXAMPLE}".'
        raise InvalidError(message, field="rotations") from error


class _RotationParser:
    """Parses the words of a rotation in order."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._found: dict[str, Any] = {}

    def _take_word(self) -> str:
        return self._words.pop(0)

    def parse_rotation(self) -> dict[str, Any]:
        """Return the fields of the rotation.

        Raise ValueError if a word is invalid, or IndexError if a word is missing.
        """
        found = self._found
        found.update(self._parse_length())
        found["users"] = self._parse_users()
        if self._words and _is_weekday_text(self._words[0]):
            if found["type"] != "weekly" and found.get("unit") != "weeks":
                raise ValueError("has weekdays, but is not a weekly rotation")
            found["weekdays"] = [WEEKDAYS[day] for day in parse_weekdays(self._take_word())]
        if self._words and self._words[0][0].isdecimal():
            found["handover_time"] = parse_informal_time(self._take_word())
        while self._words:
            self._parse_option()
        return found

    def _parse_length(self) -> dict[str, Any]:
        word = self._take_word().lower()
        if word in {"daily", "weekly"}:
            return {"type": word}
        length = _TURN_LENGTH_PATTERN.fullmatch(self._take_word()) if word == "every" else None
        if length is None:
            raise ValueError("must start with daily, weekly or a length such as every 12h")
        return {"type": "custom", "every": int(length[1]), "unit": _UNITS[length[2]]}

    def _parse_users(self) -> list[str]:
        names = [name for name in self._take_word().split(",") if name]
        if not names:
            raise ValueError("has no users")
        return names

    def _parse_option(self) -> None:
        word = self._take_word().lower()
        if word == "from":
            self._found["starts_on"] = _parse_date(self._take_word())
        elif word == "layer":
            self._found["layer"] = _parse_layer_number(self._take_word())
        elif word == "only":
            given = [self._take_word()]
            while self._words and self._words[0].lower() not in _OPTION_WORDS:
                given.append(self._take_word())
            self._found.setdefault("restrictions", []).append(parse_restriction(" ".join(given)))
        else:
            raise ValueError(f'contains the unknown word "{word[:20]}"')


def _is_weekday_text(word: str) -> bool:
    return word[:_MIN_WEEKDAY_LETTERS].lower() in WEEKDAYS or word.lower() in _WEEKDAY_GROUPS


def _parse_date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            "contains a date that is not in the format YYYY-MM-DD, such as 2026-11-30"
        ) from error


def _parse_layer_number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ValueError("has a layer that is not a whole number") from error
