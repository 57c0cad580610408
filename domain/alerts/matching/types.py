"""The kinds of fields that several resources use to choose alerts."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, WithJsonSchema

from domain.alerts.matching.conditions import Conditions, conditions_from, matchers_from
from domain.alerts.matching.matchers import Matcher
from domain.alerts.reading.incoming import Severity
from domain.types.base import Body, Option, Resource, Text, Words, one_of


def _read_matchers(value: Any, info: ValidationInfo) -> tuple[Matcher, ...]:
    if isinstance(value, tuple) and all(isinstance(each, Matcher) for each in value):
        return value
    # A form has one or several matchers on a line, perhaps with a comma at its end.
    given = value.splitlines() if isinstance(value, str) else value
    if isinstance(given, list):
        given = [line.strip().rstrip(",") if isinstance(line, str) else line for line in given]
    return matchers_from(given, field=info.field_name or "")


def _texts_of(matchers: tuple[Matcher, ...]) -> list[str]:
    return [str(matcher) for matcher in matchers]


#: Matchers of labels: a text such as `service="web", host=~"web.*"`, a list of such texts, or an
#: object of names and values. Written as a list of texts with one matcher each.
Matchers = Annotated[
    tuple[Matcher, ...],
    BeforeValidator(_read_matchers),
    PlainSerializer(_texts_of, return_type=list[str]),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    Option("--matcher"),
]
#: As the description of the API shows what a request can send.
GIVEN_MATCHERS = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ]
    }
)


def _names(value: Any) -> Any:
    """Return the names of a text that is separated by commas; names may have spaces."""
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else value


_Patterns = Annotated[
    tuple[Text, ...],
    BeforeValidator(_names),
    Field(description="Names, in which * stands for any characters; none: any."),
]
_SEVERITIES = one_of(*(each.value for each in Severity))
LABELS = (
    'Matchers such as `team="db", host=~"web.*"`, a list of such texts, or an object of names and '
    "values."
)
_FIELDS = ("severities", "environments", "services", "labels")


class ConditionsBody(Body):
    """Which alerts something is about; what is left out takes any."""

    severities: Annotated[
        Words | None,
        Option("--severity"),
        Field(description="critical, high, medium, low, info or unknown; none: any."),
    ] = None
    environments: Annotated[_Patterns | None, Option("--environment")] = None
    services: Annotated[_Patterns | None, Option("--service")] = None
    labels: Annotated[Text | list[Text] | dict[Text, Text] | None, Option("--matcher")] = Field(
        default=None, description=LABELS
    )

    def conditions(self, present: Conditions = Conditions()) -> Conditions:  # noqa: B008 - frozen
        """Return the conditions, those that were not given as they are; raise InvalidError."""
        given: dict[str, Any] = {
            name: value for name in _FIELDS if (value := getattr(self, name)) is not None
        }
        return conditions_from({**present.to_json(), **given})


class ConditionsResource(Resource):
    """Which alerts something is about; an empty list takes any."""

    severities: list[Annotated[str, _SEVERITIES]]
    environments: list[str]
    services: list[str]
    labels: list[str] = Field(description="Matchers, all of which have to match.")
