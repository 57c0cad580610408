"""Conditions that rules and routes use to select alerts, and the types of their fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, WithJsonSchema

from domain.alerts.matching.alert_labels import AlertLabels
from domain.alerts.matching.matcher_parser import MAX_MATCHERS, parse_matchers
from domain.alerts.matching.matcher_syntax import (
    Matcher,
    MatcherOperator,
    format_matchers,
    matches_all_labels,
    matches_wildcards,
)
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.errors import InvalidError
from domain.core.types.base import Body, Option, Resource, Text, Words, build_choices_schema

#: Maximum number of entries in each condition.
MAX_CONDITION_ENTRIES = 100
MAX_CONDITION_ENTRY_LENGTH = 255


@dataclass(frozen=True, kw_only=True)
class AlertConditions:
    """Conditions that an alert must meet. An empty field matches any alert."""

    #: Severities to match, as values of `domain.alerts.parsing.incoming_alert.Severity`.
    severities: tuple[str, ...] = ()
    #: Name patterns, in which `*` matches any characters. At least one pattern must match.
    environments: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    #: Label matchers, all of which must match.
    labels: tuple[Matcher, ...] = ()

    @property
    def labels_text(self) -> str:
        """Label matchers as a string for forms."""
        return format_matchers(self.labels)

    def to_json(self) -> dict[str, list[str]]:
        """Return the conditions as JSON for the API and for `parse_conditions`."""
        return {
            "severities": list(self.severities),
            "environments": list(self.environments),
            "services": list(self.services),
            "labels": [str(matcher) for matcher in self.labels],
        }


def meets_conditions(conditions: AlertConditions, alert: AlertLabels) -> bool:
    """Return whether an alert meets all conditions."""
    return (
        (not conditions.severities or alert.severity in conditions.severities)
        and _matches_any_pattern(conditions.environments, alert.environment)
        and _matches_any_pattern(conditions.services, alert.service)
        and matches_all_labels(conditions.labels, alert.labels)
    )


def _matches_any_pattern(patterns: Sequence[str], value: str | None) -> bool:
    return not patterns or any(matches_wildcards(pattern, value or "") for pattern in patterns)


def parse_conditions(json: Mapping[str, object]) -> AlertConditions:
    """Parse conditions from JSON with optional members.

    `severities`, `environments` and `services` are arrays of strings. `labels` is a string of
    matchers, an array of such strings, or an object with names and values. Other members are
    ignored. Raise InvalidError if a member is not valid.
    """
    return AlertConditions(
        severities=_validate_severities(_parse_words(json, "severities")),
        environments=_parse_words(json, "environments"),
        services=_parse_words(json, "services"),
        labels=parse_matcher_value(json.get("labels"), field="labels"),
    )


def _parse_words(json: Mapping[str, object], field: str) -> tuple[str, ...]:
    value = json.get(field)
    listed = [] if value is None else value
    if not isinstance(listed, list | tuple):
        raise InvalidError(f"`{field}` must be an array of strings.", field=field)
    if len(listed) > MAX_CONDITION_ENTRIES:
        raise InvalidError(
            f"`{field}` can have at most {MAX_CONDITION_ENTRIES} entries.", field=field
        )
    return tuple(dict.fromkeys(_validate_word(each, field) for each in listed))


def _validate_word(value: object, field: str) -> str:
    text = replace_unstorable_characters(value).strip() if isinstance(value, str) else ""
    if not text or len(text) > MAX_CONDITION_ENTRY_LENGTH:
        message = (
            f"Each entry of `{field}` must be a string of 1 to {MAX_CONDITION_ENTRY_LENGTH} "
            "characters."
        )
        raise InvalidError(message, field=field)
    return text


def _validate_severities(words: Sequence[str]) -> tuple[str, ...]:
    known = [word.value for word in Severity]
    for word in words:
        if word.lower() not in known:
            message = f'"{word}" is not a severity. Use {", ".join(known)}.'
            raise InvalidError(message, field="severities")
    return tuple(dict.fromkeys(word.lower() for word in words))


#: Operators, by the values of Alertmanager's `isEqual` and `isRegex` members.
_ALERTMANAGER_OPERATORS = {
    (True, False): MatcherOperator.EQUAL,
    (False, False): MatcherOperator.NOT_EQUAL,
    (True, True): MatcherOperator.LIKE,
    (False, True): MatcherOperator.NOT_LIKE,
}


def parse_matcher_value(value: object, *, field: str) -> tuple[Matcher, ...]:
    """Parse matchers from a string, an array of strings, or an object with names and values.

    An array may also contain objects in Alertmanager's notation. Raise InvalidError, which names
    `field`, if the matchers are not valid.
    """
    found: tuple[Matcher, ...]
    match value:
        case None:
            found = ()
        case str():
            found = parse_matchers(value, field=field)
        case list() | tuple():
            found = tuple(each for text in value for each in _parse_array_item(text, field))
        case dict():
            found = tuple(
                _build_equal_matcher(name, wanted, field) for name, wanted in value.items()
            )
        case _:
            raise _build_matchers_error(field)
    if len(found) > MAX_MATCHERS:
        raise InvalidError(f"`{field}` can have at most {MAX_MATCHERS} matchers.", field=field)
    return found


def _parse_array_item(text: object, field: str) -> tuple[Matcher, ...]:
    if isinstance(text, dict):
        return (_parse_alertmanager_matcher(text, field),)
    if not isinstance(text, str):
        raise _build_matchers_error(field)
    return parse_matchers(text, field=field)


def _build_equal_matcher(name: object, value: object, field: str) -> Matcher:
    if not (isinstance(name, str) and name.strip() and isinstance(value, str)):
        raise _build_matchers_error(field)
    # Parsing the canonical form applies the usual limits on length and characters.
    return parse_matchers(str(Matcher(name, MatcherOperator.EQUAL, value)), field=field)[0]


def _parse_alertmanager_matcher(given: dict[Any, Any], field: str) -> Matcher:
    """Parse a matcher in the notation of Alertmanager's API and `amtool --output json`."""
    name, value = given.get("name"), given.get("value")
    is_equal, is_regex = given.get("isEqual", True), given.get("isRegex", False)
    if not (
        isinstance(name, str)
        and name.strip()
        and isinstance(value, str)
        and isinstance(is_equal, bool)
        and isinstance(is_regex, bool)
    ):
        raise _build_matchers_error(field)
    return parse_matchers(
        str(Matcher(name, _ALERTMANAGER_OPERATORS[is_equal, is_regex], value)), field=field
    )[0]


def _build_matchers_error(field: str) -> InvalidError:
    message = (
        f'`{field}` must be a string of matchers such as team="db", an array of such strings, or '
        "an object with names and values that are strings."
    )
    return InvalidError(message, field=field)


def _validate_matchers(value: Any, info: ValidationInfo) -> tuple[Matcher, ...]:
    if isinstance(value, tuple) and all(isinstance(each, Matcher) for each in value):
        return value
    # Each line in a form field contains one or more matchers, and may end with a comma.
    given = value.splitlines() if isinstance(value, str) else value
    if isinstance(given, list):
        given = [line.strip().rstrip(",") if isinstance(line, str) else line for line in given]
    return parse_matcher_value(given, field=info.field_name or "")


#: Label matchers. The value can be a string such as `service="web", host=~"web.*"`, a list of such
#: strings, or an object with names and values. It is serialized as a list with one matcher per
#: string.
Matchers = Annotated[
    tuple[Matcher, ...],
    BeforeValidator(_validate_matchers),
    PlainSerializer(lambda matchers: [str(each) for each in matchers], return_type=list[str]),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    Option("--matcher"),
]
_ALERTMANAGER_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "value": {"type": "string"},
        "isRegex": {"type": "boolean"},
        "isEqual": {"type": "boolean"},
    },
    "required": ["name", "value"],
}
#: JSON schema of the matchers that a request can contain.
MATCHERS_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, _ALERTMANAGER_SCHEMA]}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ]
    }
)


def _split_names(value: Any) -> Any:
    """Split a string at commas. Names may contain spaces."""
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else value


_NamePatterns = Annotated[
    tuple[Text, ...],
    BeforeValidator(_split_names),
    Field(description="Name patterns, in which `*` matches any characters. Empty for all names."),
]
_SEVERITY_NAME = build_choices_schema(*(each.value for each in Severity))
LABELS_DESCRIPTION = (
    'Label matchers such as `team="db", host=~"web.*"`, a list of such strings, or an object '
    "that maps label names to values."
)
_CONDITION_FIELDS = ("severities", "environments", "services", "labels")


class ConditionsBody(Body):
    """Conditions that select alerts. Omitted conditions match any alert."""

    severities: Annotated[
        Words | None,
        Option("--severity"),
        Field(
            description="Severities: critical, high, medium, low, info or unknown. Empty for all "
            "severities."
        ),
    ] = None
    environments: Annotated[_NamePatterns | None, Option("--environment")] = None
    services: Annotated[_NamePatterns | None, Option("--service")] = None
    labels: Annotated[Text | list[Text] | dict[Text, Text] | None, Option("--matcher")] = Field(
        default=None, description=LABELS_DESCRIPTION
    )

    def build_conditions(self, present: AlertConditions = AlertConditions()) -> AlertConditions:
        """Return the conditions. Omitted conditions have the values in `present`.

        Raise InvalidError if a condition is not valid.
        """
        given: dict[str, Any] = {
            name: value for name in _CONDITION_FIELDS if (value := getattr(self, name)) is not None
        }
        return parse_conditions({**present.to_json(), **given})


class ConditionsResource(Resource):
    """Conditions that select alerts. An empty list matches any alert."""

    severities: list[Annotated[str, _SEVERITY_NAME]]
    environments: list[str]
    services: list[str]
    labels: list[str] = Field(description="Label matchers. An alert must match all of them.")
