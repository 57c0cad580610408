"""Forms for incidents and incident rules, and the filters of incident lists."""

from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import BooleanField, FieldList, SelectField, TextAreaField
from wtforms.validators import DataRequired

from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.listing.sort_orders import SortOrder
from domain.alerts.matching.conditions import conditions_from
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.core.database.paging import one_of, words
from domain.incidents.listing import NEWEST, SORT_ORDERS, TABS, IncidentFilter
from domain.incidents.types import (
    LONGEST_DESCRIPTION,
    LONGEST_RULE_NAME,
    LONGEST_TITLE,
    IncidentRule,
)
from domain.paging.escalations.steps import MOST_TARGETS
from forms.alerts import ConditionsForm
from forms.base import Form, Line, SomeBody, at_most
from forms.escalations import target_given

_SEVERITIES = [(each.value, each.value.capitalize()) for each in SEVERITIES]

#: Number of empty fields for further responders in the form of a rule.
_ROOM = 2


class IncidentForm(Form):
    """The form for an incident."""

    title = Line(
        "Title",
        DataRequired("Enter a title, such as Checkout is down."),
        at_most(LONGEST_TITLE, "A title"),
    )
    description = TextAreaField(
        "Description",
        validators=[at_most(LONGEST_DESCRIPTION, "A description")],
    )
    severity = SelectField("Severity", choices=_SEVERITIES, default="unknown")
    close_when_resolved = BooleanField("Close the incident when all of its alerts are resolved")
    quiet_alerts = BooleanField("Do not page for open alerts while the incident is acknowledged")


class IncidentRuleForm(ConditionsForm):
    """The form for a rule that opens incidents from alerts."""

    name = Line(
        "Name",
        DataRequired("Enter a name, such as Production."),
        at_most(LONGEST_RULE_NAME, "A name"),
    )
    close_when_resolved = BooleanField("Close incidents when all of their alerts are resolved")
    open_when_silenced = BooleanField(
        "Also open incidents for silenced alerts and during maintenance windows"
    )
    quiet_alerts = BooleanField("Do not page for open alerts while their incident is acknowledged")
    #: Responders such as `user:7`, or empty. The choices depend on the project.
    responders = FieldList(
        SelectField("Responder", choices=[], validate_choice=False),
        label="Responders",
        min_entries=_ROOM,
        max_entries=MOST_TARGETS,
    )

    @classmethod
    def of(cls, rule: IncidentRule) -> "IncidentRuleForm":
        """Return the form with the values of a rule, unless the request sends values."""
        called = [each.text for each in rule.responders if each.name]
        rows = [*called, *[""] * min(_ROOM, MOST_TARGETS - len(called))]
        conditions = cls.values_of(conditions_from(dict(rule)))
        return cls(data={**dict(rule), **conditions, "responders": rows})

    def entered(self, body: type[SomeBody]) -> SomeBody:
        """Return the entered rule.

        Raise InvalidError for invalid values.
        """
        called = dict.fromkeys(each for each in self.responders.data if each)
        responders = [target_given(each, "responders") for each in called]
        return self.read(body, **self._given(), responders=responders)


_LONGEST_NAME = 255
_OPEN = "open"
#: Query parameters of the incident list.
PARAMETERS = ("status", "search", "severity", "assignee", "sort")


@dataclass(frozen=True, kw_only=True)
class IncidentQuery:
    """The tab, filters and sort order of an incident list."""

    tab: str
    wanted: IncidentFilter
    order: SortOrder

    @property
    def arguments(self) -> dict[str, Any]:
        """Parameters of this query without default values."""
        given = {
            "status": self.tab if self.tab != _OPEN else None,
            "search": self.wanted.search or None,
            "severity": self.wanted.severity,
            "assignee": self.wanted.assignee,
            "sort": self.order.name if self.order is not NEWEST else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def filters(self) -> int:
        """Number of active filters, excluding the tab and the search."""
        return len(self.arguments.keys() - {"status", "search", "sort"})


def read_query(given: MultiDict[str, str], *, project_id: int) -> IncidentQuery:
    """Return the query that these parameters describe.

    Raise QueryError for unknown values.
    """
    tab = one_of(given, "status", TABS, _OPEN)
    severity = one_of(given, "severity", SEVERITIES, "")
    wanted = IncidentFilter(
        project_id=project_id,
        statuses=TABS[tab],
        search=storable(words(given, "search")).strip(),
        severity=Severity(severity) if severity else None,
        assignee=storable(words(given, "assignee", most=_LONGEST_NAME)) or None,
    )
    order = SORT_ORDERS[one_of(given, "sort", SORT_ORDERS, NEWEST.name)]
    return IncidentQuery(tab=tab, wanted=wanted, order=order)
