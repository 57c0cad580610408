"""The conditions of rules and routes on alerts: severity, environment, service and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.alerts.matching.labels import AlertLabels
from domain.alerts.matching.matchers import Matcher, Operator, as_text, matches
from domain.alerts.matching.parser import MOST_MATCHERS, parse_matchers
from domain.alerts.matching.patterns import fits
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.errors import InvalidError

#: Of each list.
MOST_ENTRIES = 100
LONGEST_ENTRY = 255


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What an alert has to be like; an empty field takes any alert."""

    #: Words of `domain.alerts.reading.incoming.Severity`.
    severities: tuple[str, ...] = ()
    #: Names, in which * stands for any characters; one of them has to fit.
    environments: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    #: All of them have to fit.
    labels: tuple[Matcher, ...] = ()

    @property
    def labels_text(self) -> str:
        """The matchers of labels as a form shows them."""
        return as_text(self.labels)

    def to_json(self) -> dict[str, list[str]]:
        """Return the conditions as the API shows them and as `conditions_from` reads them."""
        return {
            "severities": list(self.severities),
            "environments": list(self.environments),
            "services": list(self.services),
            "labels": [str(matcher) for matcher in self.labels],
        }


def meets(conditions: Conditions, alert: AlertLabels) -> bool:
    """Return whether an alert meets every condition."""
    return (
        (not conditions.severities or alert.severity in conditions.severities)
        and _fits_one(conditions.environments, alert.environment)
        and _fits_one(conditions.services, alert.service)
        and matches(conditions.labels, alert.labels)
    )


def _fits_one(patterns: Sequence[str], value: str | None) -> bool:
    return not patterns or any(fits(pattern, value or "") for pattern in patterns)


def conditions_from(json: Mapping[str, object]) -> Conditions:
    """Read conditions from JSON, in which every member is optional; raise InvalidError.

    The first three are arrays of strings. `labels` is a text of matchers, an array of such strings,
    or an object of names and the values that they must equal. Other members are ignored.
    """
    return Conditions(
        severities=_severities(_words(json, "severities")),
        environments=_words(json, "environments"),
        services=_words(json, "services"),
        labels=matchers_from(json.get("labels"), field="labels"),
    )


def _words(json: Mapping[str, object], field: str) -> tuple[str, ...]:
    value = json.get(field)
    listed = [] if value is None else value
    if not isinstance(listed, list | tuple):
        message = f"{field} must be an array of strings."
        raise InvalidError(message, field=field)
    if len(listed) > MOST_ENTRIES:
        message = f"{field} can have at most {MOST_ENTRIES} entries."
        raise InvalidError(message, field=field)
    return tuple(dict.fromkeys(_word(each, field) for each in listed))


def _word(value: object, field: str) -> str:
    text = storable(value).strip() if isinstance(value, str) else ""
    if not text or len(text) > LONGEST_ENTRY:
        message = f"Each entry of {field} must be a string of 1 to {LONGEST_ENTRY} characters."
        raise InvalidError(message, field=field)
    return text


def _severities(words: Sequence[str]) -> tuple[str, ...]:
    known = [word.value for word in Severity]
    for word in words:
        if word.lower() not in known:
            message = f"“{word}” is not a severity. Use {', '.join(known)}."
            raise InvalidError(message, field="severities")
    return tuple(dict.fromkeys(word.lower() for word in words))


def matchers_from(value: object, *, field: str) -> tuple[Matcher, ...]:
    """Read matchers from a text, an array of texts, or an object of names and values."""
    found: tuple[Matcher, ...]
    match value:
        case None:
            found = ()
        case str():
            found = parse_matchers(value, field=field)
        case list() | tuple():
            found = tuple(each for text in value for each in _matchers_of(text, field))
        case dict():
            found = tuple(_equal(name, wanted, field) for name, wanted in value.items())
        case _:
            raise _no_matchers(field)
    if len(found) > MOST_MATCHERS:
        message = f"{field} can have at most {MOST_MATCHERS} matchers."
        raise InvalidError(message, field=field)
    return found


def _matchers_of(text: object, field: str) -> tuple[Matcher, ...]:
    if not isinstance(text, str):
        raise _no_matchers(field)
    return parse_matchers(text, field=field)


def _equal(name: object, value: object, field: str) -> Matcher:
    if not (isinstance(name, str) and name.strip() and isinstance(value, str)):
        raise _no_matchers(field)
    # Parsed once more, so that what is too long or cannot be stored is refused as elsewhere.
    return parse_matchers(str(Matcher(name, Operator.EQUAL, value)), field=field)[0]


def _no_matchers(field: str) -> InvalidError:
    message = (
        f'{field} must be a string of matchers such as team="db", an array of such strings, or an '
        "object of names and values, all of them strings."
    )
    return InvalidError(message, field=field)
