"""API types for reports, handoff notes and post-incident documents."""

from collections.abc import Callable
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from domain.alerts.parsing.incoming_alert import Severity
from domain.core.errors import InvalidError
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone, normalize_zone_name
from domain.core.types.base import (
    MAX_NUMBER,
    Body,
    Query,
    RequestTime,
    RequiredText,
    Resource,
    Text,
    Time,
    build_choices_schema,
)
from domain.core.types.pagination import PagedQuery
from domain.paging.escalations.types import PAGE_RETENTION, ContactOutcome
from domain.paging.notifications.states import PageState
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.types import add_from_field, check_period

MAX_HANDOFF_NOTE_LENGTH = 10_000
#: Maximum number of listed pages. All pages are counted.
MAX_LISTED_PAGES = 2_000
_DAY = timedelta(days=1)
#: Condition for the time of a page and the ID of its channel, which is None for a user.
PageCondition = Callable[[datetime, int | None], bool]


class ReportPeriod(StrEnum):
    """Predefined period of a report."""

    NIGHT = "last_night"
    WEEK = "last_week"
    FOUR_WEEKS = "last_4_weeks"


@add_from_field
class ReportQuery(Query):
    """The period of a report: a predefined period, or start and end times."""

    period: ReportPeriod = Field(
        default=ReportPeriod.NIGHT,
        description="Predefined period. `last_night` is from 18:00 to 09:00 in `time_zone`. "
        "Ignored if `from` is given.",
    )
    until: RequestTime | None = Field(
        default=None,
        description="End of the period that starts at `from`. Defaults to the current time.",
    )
    time_zone: Text = Field(
        default="UTC",
        description="Time zone for night hours and times of day, such as `Europe/Berlin`.",
    )

    weekday: Annotated[int, Field(ge=0, le=6)] | None = Field(
        default=None,
        description=(
            "Weekday from 0 (Monday) to 6 (Sunday). If given, only pages to users on this weekday "
            "are listed."
        ),
    )
    hour: Annotated[int, Field(ge=0, le=23)] | None = Field(
        default=None,
        description="Hour of the day. If given, only pages to users in this hour are listed.",
    )

    @property
    def page_condition(self) -> PageCondition | None:
        """Condition for the listed pages, or None if all pages are listed."""
        if self.weekday is None and self.hour is None:
            return None
        return self._should_list_page

    def _should_list_page(self, at: datetime, channel_id: int | None) -> bool:
        local = convert_to_local(at, get_zone(self.time_zone))
        is_at = self.weekday in {None, local.weekday()} and self.hour in {None, local.hour}
        return channel_id is None and is_at

    def build_period(self, now: datetime) -> Period:
        """Return the requested period.

        Raise InvalidError if the period is not valid.
        """
        start: datetime | None = getattr(self, "from")
        if start is None and self.until is not None:
            raise InvalidError("`from` is required if `until` is given.", field="from")
        if start is None:
            return self._build_predefined_period(now)
        end = self.until or now
        if start < now - PAGE_RETENTION:
            message = (
                f"A report can start at most {PAGE_RETENTION.days} days ago, because older pages "
                "are deleted."
            )
            raise InvalidError(message, field="from")
        return check_period(start, end, fields=("from", "until"))

    def _build_predefined_period(self, now: datetime) -> Period:
        place = get_zone(normalize_zone_name(self.time_zone))
        if self.period is not ReportPeriod.NIGHT:
            return Period(now - timedelta(weeks=1 if self.period is ReportPeriod.WEEK else 4), now)
        today = convert_to_local(now, place).date()
        start, end = datetime.combine(today - _DAY, time(18)), datetime.combine(today, time(9))
        return Period(convert_to_utc(start, place), convert_to_utc(end, place))


class AnswerKind(StrEnum):
    """Kind of answer to a page about an alert or incident."""

    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    IGNORED = "ignored"
    #: Resolution of the alert or incident by a report, or by the absence of reports, before anyone
    #: answered.
    ENDED = "ended_by_itself"
    #: Page that is still waiting for an answer.
    NONE = "unanswered"


class PageAnswer(Resource):
    """The first answer to a page: its kind, time and user."""

    kind: AnswerKind
    at: Time | None
    by: str | None = Field(
        description="Username of the responder. Null for the command line, or if nobody answered."
    )
    seconds: int | None = Field(description="Number of seconds between the page and the answer.")


class ReportedPage(Resource):
    """A page to a user or channel about an alert or incident."""

    at: Time
    project: str = Field(description="Full path of the project.")
    alert_iid: int | None = Field(description="Number of the alert. Null for an incident.")
    incident_iid: int | None = Field(description="Number of the incident. Null for an alert.")
    title: str
    severity: Annotated[str, build_choices_schema(*Severity)]
    user: str | None = Field(
        description="Username of the paged user. Null for a channel or a deleted account."
    )
    name: str = Field(description="Display name of the paged user or channel.")
    state: PageState | None = Field(description="State of the page. Null if it is not known.")
    contacts: tuple[ContactOutcome, ...]
    accepted_at: Time | None = Field(
        description="Time at which the first contact accepted the page."
    )
    answer: PageAnswer
    escalation_policy: str | None = Field(
        description="Name of the escalation policy. Null if it was deleted or is not known."
    )
    route: str | None = Field(description="Name of the route. Null for the default policy.")
    round: int
    step: int = Field(description="Number of the step in the policy. 0 for an incident.")
    asked_by: str | None = Field(
        description="Name of the user or rule that requested the page about an incident. Null for "
        "an "
        "alert."
    )
    web_url: str = Field(description="URL of the web page of the alert or incident.")

    @property
    def subject_reference(self) -> str:
        """Number of the alert or incident, such as `#7` or `incident #7`."""
        return f"#{self.alert_iid}" if self.alert_iid else f"incident #{self.incident_iid}"


class ReportTotals(Resource):
    """Number of alerts, incidents, pages and paged users in a report."""

    alerts: int = Field(description="Number of alerts that started in the period.")
    acknowledged: int = Field(
        description="Number of alerts that started in the period and that a user acknowledged."
    )
    pages: int = Field(description="Number of pages to users and channels in the period.")
    people: int = Field(description="Number of users who were paged.")
    paged_alerts: int = Field(
        description="Number of alerts for which a page was sent in the period."
    )
    paged_incidents: int = Field(
        description="Number of incidents for which a page was sent in the period."
    )
    answered: int = Field(description="Number of paged alerts and incidents that a user answered.")
    ended_by_themselves: int = Field(
        description="Number of paged alerts and incidents that were resolved automatically before "
        "an answer."
    )
    unanswered: int = Field(
        description="Number of paged alerts and incidents that are still waiting for an answer."
    )


class ResponseTimes(Resource):
    """Response times, in seconds, of alerts that started in the period.

    A response time is null if there are no measurements.
    """

    severity: str | None = Field(description="Severity of the alerts. Null for all alerts.")
    alerts: int
    acknowledged: int
    acknowledge_median: float | None
    acknowledge_90th: float | None = Field(
        description="90th percentile of the time until acknowledgement."
    )
    resolved: int
    resolve_median: float | None
    resolve_90th: float | None


class TrendUnit(StrEnum):
    """Unit of time for the trend in a report."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


class TrendPoint(Resource):
    """Response times, in seconds, of alerts that started in the same hour, day or week."""

    starts_at: Time
    alerts: int
    acknowledge_median: float | None
    acknowledge_90th: float | None
    resolve_median: float | None
    resolve_90th: float | None


class PersonFigures(Resource):
    """The number of pages, acknowledged alerts and nights with pages for one user."""

    user: str = Field(description="Username.")
    pages: int
    acknowledged: int = Field(
        description="Number of alerts that this user was the first to acknowledge."
    )
    nights: int = Field(
        description=(
            "Number of nights in which the user was paged. A night lasts from 22:00 to 07:00 in "
            "the user's time zone."
        )
    )


class ProposalKind(StrEnum):
    """Kind of proposal to make a rule less noisy."""

    THRESHOLD = "threshold"
    GROUP = "group"
    SILENCE = "silence"
    CAUSE = "cause"


class NoisyRule(Resource):
    """Alerts of a project with the same title that opened repeatedly."""

    project: str = Field(description="Full path of the project.")
    title: str
    openings: int
    fingerprints: int = Field(description="Number of distinct fingerprints of the alerts.")
    pages: int
    alone: int = Field(
        description="Number of openings that ended within 10 minutes, before any user reacted."
    )
    answered: int = Field(
        description="Number of openings that a user acknowledged, resolved or ignored."
    )
    proposal: ProposalKind
    reason: str


class HandoverNote(Resource):
    """A handoff note from the user on call to the next user on call."""

    id: int
    schedule_id: int
    schedule: str
    user: str | None = Field(
        description="Username of the author. Null for the command line or a deleted account."
    )
    text: str = Field(description="Text of the note in Markdown.")
    created_at: Time


class NewHandoverNote(Body):
    """A new handoff note for the next user on call."""

    text: RequiredText = Field(
        description=f"Text in Markdown, at most {MAX_HANDOFF_NOTE_LENGTH:,} characters."
    )


class HandoverDraft(Resource):
    """Draft text of a handoff note, and the shift that the note is about."""

    text: str = Field(description="Text of the draft in Markdown.")
    starts_at: Time = Field(description="Start of the shift that the note is about.")
    ends_at: Time


class HandoverNoteQuery(PagedQuery):
    """Pagination parameters for a list of handoff notes."""


class Report(Resource):
    """An on-call report: the totals, pages, response times, trend and noisy rules of a period."""

    project: str | None = Field(
        description="Full path of the project. Null for a report about a group."
    )
    group: str | None = Field(
        description="Full path of the group. Null for a report about a project."
    )
    projects_left_out: list[str] = Field(
        description="Full paths of projects below the group that are not included, because "
        "monitoring is turned off or you cannot see their alerts."
    )
    starts_at: Time
    ends_at: Time
    time_zone: str
    totals: ReportTotals
    pages: list[ReportedPage] = Field(
        description=(
            f"Last {MAX_LISTED_PAGES:,} pages in chronological order. The CSV export contains all "
            "pages."
        )
    )
    earlier_pages: int = Field(description="Number of earlier pages that are not listed.")
    times: list[ResponseTimes] = Field(
        description="Response times of all alerts, followed by the response times for each "
        "severity."
    )
    trend_unit: TrendUnit = Field(
        description=(
            "Unit of `trend`: `hour` for up to 2 days, `day` for up to 35 days, `week` for longer "
            "periods."
        )
    )
    trend: list[TrendPoint] = Field(
        description="Response times for each hour, day or week of the period, in `time_zone`."
    )
    people: list[PersonFigures]
    hours: list[int] = Field(
        description="Number of pages to users in each hour of the day (0 to 23) in `time_zone`."
    )
    weekday_hours: list[list[int]] = Field(
        description=(
            "Number of pages to users for each weekday (starting with Monday) and hour of the day, "
            "in `time_zone`."
        )
    )
    noisy_rules: list[NoisyRule]
    handover_notes: list[HandoverNote]


MAX_DOCUMENT_LENGTH = 100_000


class DocumentQuery(Query):
    """Query parameter that selects the saved document or the filled-in template."""

    template: bool = Field(
        default=False,
        description="True to return the filled-in template, even if a document was saved.",
    )


class IncidentDocument(Resource):
    """The post-incident document of an incident, or the filled-in template."""

    incident_iid: int
    text: str = Field(
        description="Text of the document in Markdown, or the filled-in template if no document "
        "was saved."
    )
    saved: bool
    revision: int = Field(
        description="Revision number, which increases with each change. 0 if no document was saved."
    )
    updated_at: Time | None
    updated_by: str | None = Field(
        description="Username of the last editor. Null for the command line."
    )
    web_url: str


class IncidentDocumentChange(Body):
    """New text for a post-incident document."""

    text: Text = Field(description=f"Text in Markdown, at most {MAX_DOCUMENT_LENGTH:,} characters.")
    revision: Annotated[int, Field(ge=0, le=MAX_NUMBER)] | None = Field(
        default=None,
        description="Revision that the new text is based on. The request is rejected if the "
        "document has changed since then.",
    )
