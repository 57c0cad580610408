"""Forms for incidents and incident rules, and the filters of incident lists."""

from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import BooleanField, FieldList, SelectField, TextAreaField
from wtforms.validators import DataRequired

from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.listing.sort_orders import SortOrder
from domain.alerts.matching.conditions import parse_conditions
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.pagination import get_choice, get_search_text
from domain.incidents.listing import NEWEST_FIRST, SORT_ORDERS, TABS, IncidentFilter
from domain.incidents.types import (
    MAX_INCIDENT_DESCRIPTION_LENGTH,
    MAX_INCIDENT_RULE_NAME_LENGTH,
    MAX_INCIDENT_TITLE_LENGTH,
    IncidentRule,
)
from domain.paging.escalations.policy_steps import MAX_TARGETS
from forms.alerts import ConditionsForm
from forms.base import Form, SomeBody, TextLineField, limit_length
from forms.escalations import parse_selected_target

_SEVERITY_CHOICES = [(each.value, each.value.capitalize()) for each in SEVERITIES]

#: Number of empty fields for more responders in the form for a rule.
_EMPTY_RESPONDER_FIELDS = 2


class IncidentForm(Form):
    """The form for the title, description, severity and options of an incident."""

    title = TextLineField(
        "Title",
        DataRequired("Enter a title, such as Checkout is down."),
        limit_length(MAX_INCIDENT_TITLE_LENGTH, "A title"),
    )
    description = TextAreaField(
        "Description",
        validators=[limit_length(MAX_INCIDENT_DESCRIPTION_LENGTH, "A description")],
    )
    severity = SelectField("Severity", choices=_SEVERITY_CHOICES, default="unknown")
    close_when_resolved = BooleanField("Close the incident when all of its alerts are resolved")
    quiet_alerts = BooleanField("Do not page for open alerts while the incident is acknowledged")


class IncidentRuleForm(ConditionsForm):
    """The form for a rule that opens incidents from alerts."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as Production."),
        limit_length(MAX_INCIDENT_RULE_NAME_LENGTH, "A name"),
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
        min_entries=_EMPTY_RESPONDER_FIELDS,
        max_entries=MAX_TARGETS,
    )

    @classmethod
    def from_rule(cls, rule: IncidentRule) -> "IncidentRuleForm":
        """Return the form with the submitted values, if any, or the values of a rule."""
        called = [each.form_value for each in rule.responders if each.name]
        rows = [*called, *[""] * min(_EMPTY_RESPONDER_FIELDS, MAX_TARGETS - len(called))]
        conditions = cls.build_field_values(parse_conditions(dict(rule)))
        return cls(data={**dict(rule), **conditions, "responders": rows})

    def build_body(self, body: type[SomeBody]) -> SomeBody:
        """Return the entered rule.

        Raise InvalidError for invalid values.
        """
        called = dict.fromkeys(each for each in self.responders.data if each)
        responders = [parse_selected_target(each, "responders") for each in called]
        return self.build_entered_body(body, **self._list_entered_values(), responders=responders)


_MAX_NAME_LENGTH = 255
_DEFAULT_TAB = "open"
#: Query parameters of the incident list.
INCIDENT_LIST_PARAMETERS = ("status", "search", "severity", "assignee", "sort")


@dataclass(frozen=True, kw_only=True)
class IncidentListQuery:
    """The tab, filters and sort order of an incident list."""

    tab: str
    wanted: IncidentFilter
    order: SortOrder

    @property
    def query_parameters(self) -> dict[str, Any]:
        """Query parameters, without default values."""
        given = {
            "status": self.tab if self.tab != _DEFAULT_TAB else None,
            "search": self.wanted.search or None,
            "severity": self.wanted.severity,
            "assignee": self.wanted.assignee,
            "sort": self.order.name if self.order is not NEWEST_FIRST else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def filter_count(self) -> int:
        """Number of active filters, excluding the tab and the search."""
        return len(self.query_parameters.keys() - {"status", "search", "sort"})


def parse_incident_list_query(
    arguments: MultiDict[str, str], *, project_id: int
) -> IncidentListQuery:
    """Parse the query parameters of a project's incident list.

    Raise QueryError for unknown values.
    """
    tab = get_choice(arguments, "status", TABS, _DEFAULT_TAB)
    severity = get_choice(arguments, "severity", SEVERITIES, "")
    wanted = IncidentFilter(
        project_id=project_id,
        statuses=TABS[tab],
        search=replace_unstorable_characters(get_search_text(arguments, "search")).strip(),
        severity=Severity(severity) if severity else None,
        assignee=replace_unstorable_characters(
            get_search_text(arguments, "assignee", maximum=_MAX_NAME_LENGTH)
        )
        or None,
    )
    order = SORT_ORDERS[get_choice(arguments, "sort", SORT_ORDERS, NEWEST_FIRST.name)]
    return IncidentListQuery(tab=tab, wanted=wanted, order=order)
