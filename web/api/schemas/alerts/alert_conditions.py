"""The conditions of routes and rules on alerts, as requests and responses have them."""

from typing import Annotated, Any

from pydantic import Field

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.reading.incoming import Severity
from web.api.schemas.base import Body, Resource, Text, one_of

_Patterns = Annotated[
    list[Text], Field(description="Names, in which * stands for any characters; none: any.")
]
_SEVERITIES = one_of(*(each.value for each in Severity))
_FIELDS = ("severities", "environments", "services", "labels")


class ConditionsBody(Body):
    """Which alerts something is about; what is left out takes any."""

    severities: Annotated[list[Text], Field(description="None: any.")] | None = None
    environments: _Patterns | None = None
    services: _Patterns | None = None
    labels: Text | list[Text] | dict[Text, Text] | None = Field(
        default=None,
        description='Matchers such as `team="db", host=~"web.*"`, a list of such texts, or an '
        "object of names and values.",
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
