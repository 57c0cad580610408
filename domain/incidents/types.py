"""Incidents, their comments and rules as all faces see them, and what may be asked of them."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from domain.alerts.matching.conditions import ConditionsBody, ConditionsResource
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.core.database.paging import LARGEST_ID, LONGEST_SEARCH
from domain.core.errors import InvalidError
from domain.core.types.base import (
    LARGEST_NUMBER,
    Body,
    KeysetQuery,
    Numbers,
    OffsetQuery,
    Option,
    Resource,
    Text,
    Time,
    Words,
    one_of,
    partial,
    split,
)
from domain.paging.escalations.steps import (
    MOST_TARGETS,
    AnyTarget,
    TargetKind,
    parse_target,
    target_words,
)
from domain.paging.escalations.types import EscalationTarget, GivenTarget

LONGEST_TITLE = 255
LONGEST_DESCRIPTION = 50_000
LONGEST_NOTE = 10_000
#: The most alerts that a request links.
MOST_AT_ONCE = 200
_SEVERITIES = tuple(Severity)
#: The urgency of critical.
HIGHEST_URGENCY = len(_SEVERITIES) - 1
#: The most linked alerts that an incident names; it has the number of all.
MOST_NAMED_ALERTS = 100
LONGEST_RULE_NAME = 255
_LONGEST_NAME = 255


class IncidentStatus(StrEnum):
    """The status of an incident."""

    TRIGGERED = "triggered"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


STATUSES = tuple(status.value for status in IncidentStatus)
OPEN_STATUSES = (IncidentStatus.TRIGGERED.value, IncidentStatus.ACKNOWLEDGED.value)


def urgency_of(severity: Severity) -> int:
    """Return the severity as it is stored: 0 for unknown to 5 for critical."""
    return HIGHEST_URGENCY - severity.rank


def severity_of(urgency: int) -> Severity:
    """Return the severity that is stored so."""
    return _SEVERITIES[HIGHEST_URGENCY - urgency]


class EntryKind(StrEnum):
    """The kind of an entry."""

    #: A comment that a user wrote.
    NOTE = "note"
    OPENED = "opened"
    #: New alerts with a fingerprint that the incident holds, or of a rule that opens too many.
    JOINED = "joined"
    #: Alerts that a user linked or unlinked.
    LINKED = "linked"
    UNLINKED = "unlinked"
    STATUS = "status"
    SEVERITY = "severity"
    #: The text is the user name.
    ASSIGNED = "assigned"
    UNASSIGNED = "unassigned"
    #: By hand or by a rule; the text is the user name, and the details have the key of the page.
    PAGED = "paged"
    #: Whether and why the user was not paged, or not reached: a sentence without its subject.
    PAGE = "page"
    #: Whom a rule did not page because of a gap, with the reasons.
    UNPAGED = "unpaged"
    TITLE = "title"
    DESCRIPTION = "description"
    #: Whether it is closed when its alerts are resolved.
    CLOSING = "closing"
    #: Whether its alerts page nobody while it is acknowledged.
    QUIET = "quiet"


class EntryFilter(StrEnum):
    """Filter of the entries of a timeline."""

    ALL = "all_notes"
    COMMENTS = "only_comments"
    ACTIVITY = "only_activity"


def checked_title(text: str) -> str:
    """Return a title on one line, or raise InvalidError."""
    title = " ".join(storable(text).split())
    if not title or len(title) > LONGEST_TITLE:
        raise InvalidError(f"A title has 1 to {LONGEST_TITLE} characters.", field="title")
    return title


def checked_description(text: str) -> str:
    """Return a description, which may be empty, or raise InvalidError."""
    return checked_lines(text, "description", LONGEST_DESCRIPTION)


def checked_note(text: str) -> str:
    """Return a comment, or raise InvalidError."""
    note = checked_lines(text, "body", LONGEST_NOTE)
    if not note:
        raise InvalidError("Enter a comment.", field="body")
    return note


def checked_lines(text: str, field: str, longest: int) -> str:
    """Return a text of lines, which may be empty, or raise InvalidError."""
    lines = storable(text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if len(lines) > longest:
        message = f"It can have at most {longest:,} characters; this has {len(lines):,}."
        raise InvalidError(message, field=field)
    return lines


#: A text of a filter. What no database can store matches nothing, as on the page.
_Name = Annotated[str, Field(max_length=_LONGEST_NAME), AfterValidator(storable)]
_Search = Annotated[str, Field(max_length=LONGEST_SEARCH), AfterValidator(storable)]
_UserIds = Annotated[tuple[Annotated[int, Field(ge=0, le=LARGEST_ID)], ...], BeforeValidator(split)]


class IncidentQuery(KeysetQuery):
    """Which incidents a list has, and in which order."""

    status: Literal["open", "triggered", "acknowledged", "resolved", "all"] = Field(
        default="all", description="`open` is triggered or acknowledged."
    )
    severity: Severity | None = None
    assignee: _Name = Field(default="", description="A user name, or `-` for nobody.")
    alert: Annotated[int, Field(ge=1, le=LARGEST_NUMBER)] | None = Field(
        default=None, description="The number (iid) of an alert that it has."
    )
    search: _Search = Field(
        default="",
        description="Words of title and description or their beginnings; all have to occur.",
    )
    sort: Literal["created", "oldest", "severity"] = "created"
    order_by: Literal["created_at"] = Field(
        default="created_at", description="Accepted for clients that send it; `sort` decides."
    )


_QUIETS = "True if the open alerts of the incident page nobody while"


class _IncidentFields(Body):
    title: Text | None = Field(
        default=None, description=f"Title of at most {LONGEST_TITLE} characters."
    )
    description: Text | None = Field(
        default=None, description=f"Markdown, at most {LONGEST_DESCRIPTION} characters."
    )
    severity: Severity | None = None
    assignees: Annotated[
        Words | None,
        Option("--assignee"),
        Field(description="User names; empty or `-` for nobody."),
    ] = None
    assignee_ids: _UserIds | None = Field(
        default=None, description="Ids of users in place of names; 0 or empty for nobody."
    )
    close_when_resolved: Annotated[
        bool | None,
        Option("--close-when-resolved/--close-by-hand"),
        Field(description="True to close the incident when all of its alerts are resolved."),
    ] = None
    quiet_alerts: Annotated[
        bool | None,
        Option("--quiet-alerts/--page-alerts"),
        Field(description=f"{_QUIETS} it is acknowledged."),
    ] = None
    page_assignees: Annotated[
        bool,
        Option("--page-assignees"),
        Field(description="True to page users whom this change assigns."),
    ] = False


class NewIncident(_IncidentFields):
    """A new incident. With alerts, what is left out is composed from the first of them."""

    alerts: Annotated[
        Numbers,
        Option("--alert"),
        Field(description=f"Numbers (iid) of at most {MOST_AT_ONCE} alerts."),
    ] = ()


class IncidentChange(_IncidentFields):
    """Changes to an incident; omitted fields are kept."""

    status: Literal["triggered", "acknowledged", "resolved"] | None = Field(
        default=None,
        description="`acknowledged` acknowledges its triggered alerts, `resolved` closes the "
        "incident and resolves its open alerts.",
    )


class IncidentPerson(Resource):
    """Somebody who opened an incident, wrote about it or looks after it."""

    id: int | None = Field(description="Null if the account was deleted.")
    username: str


class Incident(Resource):
    """An incident."""

    id: int
    iid: int = Field(description="Its number within the project.")
    project_id: int
    title: str
    description: str = Field(description="Markdown.")
    severity: Annotated[Severity, one_of(*Severity)]
    status: IncidentStatus
    assignees: tuple[IncidentPerson, ...]
    alerts: tuple[int, ...] = Field(
        description=f"Numbers (iid) of its first {MOST_NAMED_ALERTS} alerts."
    )
    alerts_count: int
    close_when_resolved: bool
    quiet_alerts: bool = Field(description=f"{_QUIETS} it is acknowledged.")
    rule_id: int | None = Field(description="The rule that opened it.")
    author: IncidentPerson | None = Field(description="Null if a rule or the command line did.")
    created_at: Time
    updated_at: Time
    acknowledged_at: Time | None
    resolved_at: Time | None
    web_url: str

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to work on it."""
        return self.status is not IncidentStatus.RESOLVED


class IncidentPageBody(Body):
    """Users to page about an incident."""

    users: Annotated[
        Words, Option("--user"), Field(description="User names; by default its assignees.")
    ] = ()


class IncidentAlertsQuery(KeysetQuery):
    """The alerts of an incident, in the order of their numbers."""


class IncidentAlertsBody(Body):
    """Alerts to be linked."""

    alerts: Numbers = Field(description=f"Numbers (iid) of at most {MOST_AT_ONCE} alerts.")


class IncidentNoteQuery(KeysetQuery):
    """Which entries of the timeline a list has, and in which order."""

    sort: Literal["desc", "asc"] = Field(default="desc", description="The newest or oldest first.")
    order_by: Literal["created_at"] = "created_at"
    activity_filter: EntryFilter = EntryFilter.ALL


class _NoteFields(Body):
    internal: bool | None = Field(
        default=None,
        description="True to show the comment only to members with the Reporter role or higher.",
    )
    confidential: bool | None = Field(default=None, description="A former name of `internal`.")

    @property
    def is_internal(self) -> bool | None:
        """Whether it is internal, by either name; None if it is not said."""
        return self.confidential if self.internal is None else self.internal


class NewIncidentNote(_NoteFields):
    """A new comment."""

    body: Text = Field(default="", description="Markdown.")


class IncidentNoteChange(_NoteFields):
    """Changes to a comment; omitted fields are kept."""

    body: Text | None = Field(default=None, description="Markdown.")


class IncidentNote(Resource):
    """An entry of the timeline."""

    id: int
    kind: EntryKind
    body: str = Field(description="The comment in Markdown, or what happened.")
    author: IncidentPerson | None = Field(
        description="Null for what rules and the command line did."
    )
    system: bool = Field(description="True if the entry describes a change of the incident.")
    internal: bool
    confidential: bool = Field(description="A former name of `internal`.")
    noteable_type: Literal["Incident"] = "Incident"
    noteable_id: int
    noteable_iid: int
    project_id: int
    created_at: Time
    updated_at: Time


class IncidentRuleQuery(OffsetQuery):
    """The rules of a project in the order in which they are asked: the oldest first."""


class NewIncidentRule(ConditionsBody):
    """A new rule: an alert that meets all of its conditions opens an incident."""

    name: Text = Field(description=f"1 to {LONGEST_RULE_NAME} characters.")
    close_when_resolved: Annotated[
        bool,
        Option("--close-when-resolved/--close-by-hand"),
        Field(
            description="True to close incidents of the rule when all of their alerts are resolved."
        ),
    ] = False
    open_when_silenced: Annotated[
        bool,
        Option("--open-when-silenced/--skip-silenced"),
        Field(
            description="True to open incidents for alerts that are silenced or in a maintenance "
            "window. Otherwise the rule opens them afterwards."
        ),
    ] = False
    quiet_alerts: Annotated[
        bool,
        Option("--quiet-alerts/--page-alerts"),
        Field(
            description="True if open alerts of its incidents page nobody while the incident is "
            "acknowledged."
        ),
    ] = False
    responders: Annotated[
        tuple[GivenTarget | Text, ...],
        Option("--responder"),
        Field(
            max_length=MOST_TARGETS,
            description="Responders that the rule assigns to its incidents and pages. Each is an "
            "object, or a text such as `user:alice` or `schedule:Primary`.",
        ),
    ] = ()
    active: Annotated[
        bool, Option("--on/--off"), Field(description="True if the rule opens incidents.")
    ] = True

    @property
    def called(self) -> list[AnyTarget]:
        """The responders as targets; raises InvalidError."""
        found = [
            parse_target(each, "responders") if isinstance(each, str) else each.target
            for each in self.responders
        ]
        if any(each.kind is TargetKind.CHANNEL for each in found):
            message = "Responders are people and schedules. Escalation policies page channels."
            raise InvalidError(message, field="responders")
        return found


@partial
class IncidentRuleChange(NewIncidentRule):
    """Changes to a rule; omitted fields are kept."""


class IncidentRule(ConditionsResource):
    """A rule that opens incidents."""

    id: int
    name: str
    close_when_resolved: bool
    open_when_silenced: bool = Field(
        description="True to open incidents for alerts that are silenced or in a maintenance "
        "window. Otherwise the rule opens them afterwards."
    )
    quiet_alerts: bool = Field(
        description="True if open alerts of its incidents page nobody while the incident is "
        "acknowledged."
    )
    responders: list[EscalationTarget] = Field(
        description="Responders of the rule: users and schedules that it assigns to its incidents "
        "and pages."
    )
    active: bool = Field(description="True if the rule opens incidents.")
    created_at: Time
    updated_at: Time

    @property
    def responder_words(self) -> list[str]:
        """Whom it calls, in words."""
        return [target_words(TargetKind(each.type), each.name) for each in self.responders]
