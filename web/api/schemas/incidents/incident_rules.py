"""Rules that open incidents."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.incidents.rules import LONGEST_NAME, RuleValues, RuleView
from web.api.schemas.base import Body, OffsetQuery, Resource, Text, Time, Words


def _listed(value: Any) -> Any:
    """Return the names of a text that is separated by commas; names may have spaces."""
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else value


_Names = Annotated[tuple[Text, ...], BeforeValidator(_listed)]
_Labels = Annotated[
    Text | tuple[Text, ...] | dict[str, Text],
    Field(
        description='Matchers in the syntax of Alertmanager, such as `team="db", host=~"web-.*"`: '
        "a text, an array of texts, or an object of names and values. All have to fit."
    ),
]


class IncidentRuleQuery(OffsetQuery):
    """The rules of a project in the order in which they are asked: the oldest first."""


class _Fields(Body):
    severities: Words | None = Field(
        default=None, description="critical, high, medium, low, info or unknown; empty for any."
    )
    environments: _Names | None = Field(
        default=None, description="Names, in which `*` stands for any characters; empty for any."
    )
    services: _Names | None = Field(
        default=None, description="Names, in which `*` stands for any characters; empty for any."
    )
    labels: _Labels | None = None
    close_when_resolved: bool | None = Field(
        default=None,
        description="Whether its incidents are closed when all of their alerts are resolved; "
        "false if it is left out of a new rule.",
    )
    open_when_silenced: bool | None = Field(
        default=None,
        description="Whether it opens incidents for silenced alerts too, and during maintenance "
        "windows; false if it is left out of a new rule.",
    )
    active: bool | None = Field(
        default=None,
        description="Whether it opens incidents; true if it is left out of a new rule.",
    )

    def conditions(self, present: Mapping[str, object]) -> Conditions:
        """Return the conditions; those that are left out stay. Raise InvalidError."""
        names = ("severities", "environments", "services", "labels")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return conditions_from({**present, **given})


class IncidentRuleBody(_Fields):
    """A new rule: an alert that meets all of its conditions opens an incident."""

    name: Text = Field(description=f"1 to {LONGEST_NAME} characters.")

    @property
    def values(self) -> RuleValues:
        """What the rule is made of."""
        return RuleValues(
            name=self.name,
            conditions=self.conditions({}),
            closes_when_resolved=bool(self.close_when_resolved),
            opens_when_silenced=bool(self.open_when_silenced),
            is_active=self.active,
        )


class IncidentRuleChange(_Fields):
    """Changes to a rule; omitted fields are kept."""

    name: Text | None = None

    def values(self, rule: RuleView) -> RuleValues:
        """Return what becomes of a rule."""
        closes, opens = self.close_when_resolved, self.open_when_silenced
        return RuleValues(
            name=rule.name if self.name is None else self.name,
            conditions=self.conditions(rule.conditions.to_json()),
            closes_when_resolved=rule.closes_when_resolved if closes is None else closes,
            opens_when_silenced=rule.opens_when_silenced if opens is None else opens,
            is_active=self.active,
        )


class IncidentRule(Resource):
    """A rule that opens incidents."""

    id: int
    name: str
    severities: tuple[str, ...]
    environments: tuple[str, ...]
    services: tuple[str, ...]
    labels: tuple[str, ...] = Field(description="Matchers, each as a text.")
    close_when_resolved: bool
    open_when_silenced: bool = Field(
        description="Whether it opens incidents for alerts that are silenced or in a maintenance "
        "window. If not, they wait until that is over."
    )
    active: bool = Field(description="Whether it opens incidents.")
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, view: RuleView) -> "IncidentRule":
        """Present a rule."""
        return cls(
            id=view.id,
            name=view.name,
            **{name: tuple(each) for name, each in view.conditions.to_json().items()},
            close_when_resolved=view.closes_when_resolved,
            open_when_silenced=view.opens_when_silenced,
            active=view.is_active,
            created_at=view.created_at,
            updated_at=view.updated_at,
        )
