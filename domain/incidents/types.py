"""Resources and request bodies for incidents, their comments and their rules."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from domain.alerts.matching.conditions import ConditionsBody, ConditionsResource
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.pagination import MAX_ID, MAX_SEARCH_TEXT_LENGTH
from domain.core.errors import InvalidError
from domain.core.types.base import (
    MAX_NUMBER,
    Body,
    Numbers,
    Option,
    Resource,
    Text,
    Time,
    Words,
    build_choices_schema,
    make_fields_optional,
    split_words,
)
from domain.core.types.pagination import KeysetQuery, OffsetQuery
from domain.paging.escalations.policy_steps import (
    MAX_TARGETS,
    AnyTarget,
    TargetKind,
    format_target,
    parse_target,
)
from domain.paging.escalations.types import EscalationTarget, EscalationTargetBody

MAX_INCIDENT_TITLE_LENGTH = 255
MAX_INCIDENT_DESCRIPTION_LENGTH = 50_000
MAX_INCIDENT_COMMENT_LENGTH = 10_000
#: Maximum number of alerts that a request can link.
MAX_ALERTS_PER_LINK = 200
_SEVERITIES = tuple(Severity)
#: Urgency that corresponds to the `critical` severity.
MAX_URGENCY = len(_SEVERITIES) - 1
#: Maximum number of linked alerts that an incident lists. The count of an incident includes all
#: linked alerts.
MAX_LISTED_ALERTS = 100
MAX_INCIDENT_RULE_NAME_LENGTH = 255
_MAX_NAME_LENGTH = 255


class IncidentStatus(StrEnum):
    """The status of an incident, from triggered to resolved."""

    TRIGGERED = "triggered"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


STATUSES = tuple(status.value for status in IncidentStatus)
OPEN_STATUSES = (IncidentStatus.TRIGGERED.value, IncidentStatus.ACKNOWLEDGED.value)


def convert_to_urgency(severity: Severity) -> int:
    """Convert a severity to its stored value, from 0 for unknown to 5 for critical."""
    return MAX_URGENCY - severity.rank


def convert_to_severity(urgency: int) -> Severity:
    """Convert a stored value to a severity."""
    return _SEVERITIES[MAX_URGENCY - urgency]


class EntryKind(StrEnum):
    """The kind of a timeline entry, such as a comment, a status change or an assignment."""

    #: Comment by a user.
    NOTE = "note"
    OPENED = "opened"
    #: New alerts that were added because of their fingerprint, or because a rule opened too many
    #: incidents.
    JOINED = "joined"
    #: Alerts that a user linked or unlinked.
    LINKED = "linked"
    UNLINKED = "unlinked"
    STATUS = "status"
    SEVERITY = "severity"
    #: Assignment of a user. The text is the username.
    ASSIGNED = "assigned"
    UNASSIGNED = "unassigned"
    #: Page that a user or a rule requested. The text is the name of the paged user, and the details
    #: contain the key of the page.
    PAGED = "paged"
    #: Reason why the user was not paged or not reached, as a sentence without its subject.
    PAGE = "page"
    #: Reasons why a rule did not page all of its responders, such as a gap in a schedule.
    UNPAGED = "unpaged"
    TITLE = "title"
    DESCRIPTION = "description"
    #: Change to the setting that closes the incident when its alerts are resolved.
    CLOSING = "closing"
    #: Change to the setting that stops pages for alerts while the incident is acknowledged.
    QUIET = "quiet"


class EntryFilter(StrEnum):
    """A filter for timeline entries: all entries, only comments, or only activity."""

    ALL = "all_notes"
    COMMENTS = "only_comments"
    ACTIVITY = "only_activity"


def validate_incident_title(text: str) -> str:
    """Validate a title, and return it as one line.

    Raise InvalidError if the title is empty or too long.
    """
    title = " ".join(replace_unstorable_characters(text).split())
    if not title or len(title) > MAX_INCIDENT_TITLE_LENGTH:
        raise InvalidError(
            f"The title must have 1 to {MAX_INCIDENT_TITLE_LENGTH} characters.", field="title"
        )
    return title


def validate_incident_description(text: str) -> str:
    """Validate a description, and return it with normalized line breaks.

    The description may be empty. Raise InvalidError if it is too long.
    """
    return validate_multiline_text(text, "description", MAX_INCIDENT_DESCRIPTION_LENGTH)


def validate_comment(text: str) -> str:
    """Validate the text of a comment, and return it with normalized line breaks.

    Raise InvalidError if the comment is empty or too long.
    """
    note = validate_multiline_text(text, "body", MAX_INCIDENT_COMMENT_LENGTH)
    if not note:
        raise InvalidError("Enter a comment.", field="body")
    return note


def validate_multiline_text(text: str, field: str, max_length: int) -> str:
    """Validate text that can have several lines, and return it with normalized line breaks.

    The text may be empty. Raise InvalidError if it is too long.
    """
    lines = replace_unstorable_characters(text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if len(lines) > max_length:
        message = f"The text can have at most {max_length:,} characters. It has {len(lines):,}."
        raise InvalidError(message, field=field)
    return lines


#: Text of a filter. Characters that no database can store are replaced, as in stored incidents.
_FilterText = Annotated[
    str, Field(max_length=_MAX_NAME_LENGTH), AfterValidator(replace_unstorable_characters)
]
_Search = Annotated[
    str, Field(max_length=MAX_SEARCH_TEXT_LENGTH), AfterValidator(replace_unstorable_characters)
]
_UserIds = Annotated[
    tuple[Annotated[int, Field(ge=0, le=MAX_ID)], ...], BeforeValidator(split_words)
]


class IncidentQuery(KeysetQuery):
    """Filters and order for a list of incidents."""

    status: Literal["open", "triggered", "acknowledged", "resolved", "all"] = Field(
        default="all",
        description="Status of the incident. `open` matches triggered and acknowledged incidents.",
    )
    severity: Severity | None = None
    assignee: _FilterText = Field(
        default="", description="Username of an assignee, or `-` for incidents without assignees."
    )
    alert: Annotated[int, Field(ge=1, le=MAX_NUMBER)] | None = Field(
        default=None, description="Number (iid) of an alert that is linked to the incident."
    )
    search: _Search = Field(
        default="",
        description="Words or word prefixes that the title or description must contain.",
    )
    sort: Literal["created", "oldest", "severity"] = "created"
    order_by: Literal["created_at"] = Field(
        default="created_at", description="Accepted for compatibility, but ignored. Use `sort`."
    )


_QUIET_ALERTS_DESCRIPTION = (
    "True if no pages are sent for the open alerts while the incident is acknowledged."
)


class _IncidentFields(Body):
    title: Text | None = Field(
        default=None, description=f"Title of at most {MAX_INCIDENT_TITLE_LENGTH} characters."
    )
    description: Text | None = Field(
        default=None,
        description=(
            f"Description in Markdown, at most {MAX_INCIDENT_DESCRIPTION_LENGTH} characters."
        ),
    )
    severity: Severity | None = None
    assignees: Annotated[
        Words | None,
        Option("--assignee"),
        Field(description="Usernames of the assignees. Empty or `-` for no assignees."),
    ] = None
    assignee_ids: _UserIds | None = Field(
        default=None,
        description="User IDs of the assignees, instead of usernames. Empty or 0 for no assignees.",
    )
    close_when_resolved: Annotated[
        bool | None,
        Option("--close-when-resolved/--close-by-hand"),
        Field(description="True to close the incident when all of its alerts are resolved."),
    ] = None
    quiet_alerts: Annotated[
        bool | None,
        Option("--quiet-alerts/--page-alerts"),
        Field(description=_QUIET_ALERTS_DESCRIPTION),
    ] = None
    page_assignees: Annotated[
        bool,
        Option("--page-assignees"),
        Field(description="True to page the newly assigned users."),
    ] = False


class NewIncident(_IncidentFields):
    """Request body for opening an incident.

    If the incident has alerts, omitted fields are derived from the first alert.
    """

    alerts: Annotated[
        Numbers,
        Option("--alert"),
        Field(description=f"Numbers (iid) of the alerts to link, at most {MAX_ALERTS_PER_LINK}."),
    ] = ()


class IncidentChange(_IncidentFields):
    """Changes to an incident. Omitted fields are not changed."""

    status: Literal["triggered", "acknowledged", "resolved"] | None = Field(
        default=None,
        description="New status. `acknowledged` also acknowledges the triggered alerts of the "
        "incident. `resolved` closes the incident and resolves its open alerts.",
    )


class IncidentPerson(Resource):
    """A user who opened an incident, commented on it or is assigned to it."""

    id: int | None = Field(description="User ID. Null if the account was deleted.")
    username: str


class Incident(Resource):
    """An incident of a project, with its status, assignees and linked alerts."""

    id: int
    iid: int = Field(description="Number of the incident in the project.")
    project_id: int
    title: str
    description: str = Field(description="Description in Markdown.")
    severity: Annotated[Severity, build_choices_schema(*Severity)]
    status: IncidentStatus
    assignees: tuple[IncidentPerson, ...]
    alerts: tuple[int, ...] = Field(
        description=f"Numbers (iid) of the first {MAX_LISTED_ALERTS} linked alerts."
    )
    alerts_count: int
    close_when_resolved: bool
    quiet_alerts: bool = Field(description=_QUIET_ALERTS_DESCRIPTION)
    rule_id: int | None = Field(description="ID of the rule that opened the incident.")
    author: IncidentPerson | None = Field(
        description="User who opened the incident. Null if a rule or command opened it."
    )
    created_at: Time
    updated_at: Time
    acknowledged_at: Time | None
    resolved_at: Time | None
    web_url: str

    @property
    def is_open(self) -> bool:
        """True if the incident is triggered or acknowledged."""
        return self.status is not IncidentStatus.RESOLVED


class IncidentPageBody(Body):
    """Users to page about an incident."""

    users: Annotated[
        Words,
        Option("--user"),
        Field(description="Usernames. Defaults to the assignees of the incident."),
    ] = ()


class IncidentAlertsQuery(KeysetQuery):
    """Query parameters for a list of the alerts in an incident, newest first."""


class IncidentAlertsBody(Body):
    """Alerts to link to an incident."""

    alerts: Numbers = Field(
        description=f"Numbers (iid) of the alerts to link, at most {MAX_ALERTS_PER_LINK}."
    )


class IncidentNoteQuery(KeysetQuery):
    """Filters and order for the timeline of an incident."""

    sort: Literal["desc", "asc"] = Field(
        default="desc", description="Sort order: newest first (`desc`) or oldest first (`asc`)."
    )
    order_by: Literal["created_at"] = "created_at"
    activity_filter: EntryFilter = EntryFilter.ALL


class _NoteFields(Body):
    internal: bool | None = Field(
        default=None,
        description="True to show the comment only to members with the Reporter role or higher.",
    )
    confidential: bool | None = Field(default=None, description="Deprecated alias of `internal`.")

    @property
    def is_internal(self) -> bool | None:
        """Value of `internal` or of its alias `confidential`, or None if both are omitted."""
        return self.confidential if self.internal is None else self.internal


class NewIncidentNote(_NoteFields):
    """Request body for adding a comment to an incident."""

    body: Text = Field(default="", description="Text of the comment in Markdown.")


class IncidentNoteChange(_NoteFields):
    """Changes to a comment. Omitted fields are not changed."""

    body: Text | None = Field(default=None, description="Text of the comment in Markdown.")


class IncidentNote(Resource):
    """An entry in the timeline of an incident."""

    id: int
    kind: EntryKind
    body: str = Field(description="Comment in Markdown, or a description of the change.")
    author: IncidentPerson | None = Field(
        description="User who created the entry. Null if a rule or command created it."
    )
    system: bool = Field(description="True if the entry describes a change to the incident.")
    internal: bool
    confidential: bool = Field(description="Deprecated alias of `internal`.")
    noteable_type: Literal["Incident"] = "Incident"
    noteable_id: int
    noteable_iid: int
    project_id: int
    created_at: Time
    updated_at: Time


class IncidentRuleQuery(OffsetQuery):
    """Query parameters for a list of a project's rules, which are applied oldest first."""


class NewIncidentRule(ConditionsBody):
    """Request body for creating a rule. An alert that meets all conditions opens an incident."""

    name: Text = Field(description=f"Name of 1 to {MAX_INCIDENT_RULE_NAME_LENGTH} characters.")
    close_when_resolved: Annotated[
        bool,
        Option("--close-when-resolved/--close-by-hand"),
        Field(
            description="True to close the rule's incidents when all of their alerts are resolved."
        ),
    ] = False
    open_when_silenced: Annotated[
        bool,
        Option("--open-when-silenced/--skip-silenced"),
        Field(
            description="True to open incidents for alerts that are silenced or in a maintenance "
            "window. Otherwise, the rule opens the incidents when the silence or window ends."
        ),
    ] = False
    quiet_alerts: Annotated[
        bool,
        Option("--quiet-alerts/--page-alerts"),
        Field(description="True if no pages are sent for open alerts of acknowledged incidents."),
    ] = False
    responders: Annotated[
        tuple[EscalationTargetBody | Text, ...],
        Option("--responder"),
        Field(
            max_length=MAX_TARGETS,
            description="Users and schedules to assign to the rule's incidents and to page, as "
            "objects or as strings such as `user:alice` and `schedule:Primary`.",
        ),
    ] = ()
    active: Annotated[
        bool, Option("--on/--off"), Field(description="True if the rule opens incidents.")
    ] = True

    @property
    def responder_targets(self) -> list[AnyTarget]:
        """The responders as parsed references to users and schedules.

        Raise InvalidError if a responder is not valid.
        """
        found = [
            parse_target(each, "responders") if isinstance(each, str) else each.target
            for each in self.responders
        ]
        if any(each.kind is TargetKind.CHANNEL for each in found):
            message = (
                "Responders must be users or schedules. Use an escalation policy to page a channel."
            )
            raise InvalidError(message, field="responders")
        return found


@make_fields_optional
class IncidentRuleChange(NewIncidentRule):
    """Changes to a rule. Omitted fields are not changed."""


class IncidentRule(ConditionsResource):
    """A rule that opens incidents for matching alerts, with its conditions and responders."""

    id: int
    name: str
    close_when_resolved: bool
    open_when_silenced: bool = Field(
        description="True to open incidents for alerts that are silenced or in a maintenance "
        "window. Otherwise, the rule opens the incidents when the silence or window ends."
    )
    quiet_alerts: bool = Field(
        description="True if no pages are sent for open alerts of acknowledged incidents."
    )
    responders: list[EscalationTarget] = Field(
        description="Users and schedules that are assigned to the rule's incidents and paged."
    )
    active: bool = Field(description="True if the rule opens incidents.")
    created_at: Time
    updated_at: Time

    @property
    def responder_descriptions(self) -> list[str]:
        """Descriptions of the responders, such as `@alice` or `the people on call in Primary`."""
        return [format_target(TargetKind(each.type), each.name) for each in self.responders]
