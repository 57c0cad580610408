"""Silences of a project, and what they mute."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.listing.filters import STATUSES
from domain.alerts.matching.conditions import matchers_from
from domain.alerts.matching.matchers import Matcher
from domain.alerts.matching.parser import LONGEST_TEXT
from domain.alerts.reading.incoming import Severity
from domain.durations import parse_duration
from domain.errors import InvalidError
from domain.silences.muting import Mute, MuteKind
from domain.silences.preview import Preview, PreviewedAlert
from domain.silences.silences import LONGEST_COMMENT, NewSilence, SilenceChange, SilenceView
from web.api.schemas.base import Body, GivenTime, PagedQuery, Query, Resource, Text, Time, one_of

State = Literal["active", "pending", "expired"]
_Duration = Annotated[
    Text | None,
    Field(description="A length such as `30m` or `2h`, from the start on. Instead of `ends_at`."),
]
_Comment = Annotated[Text, Field(max_length=LONGEST_COMMENT)]


class SilenceQuery(PagedQuery):
    """Which silences a list has, in which order."""

    order_by: str = Field(default="id", pattern="^(?:id|starts_at|ends_at)$")
    state: State | None = None


class SilenceBody(Body):
    """A new silence: an end or a duration is needed."""

    matchers: Text | list[Text] | dict[Text, Text] = Field(
        description='Matchers such as `service="web", host=~"web.*"`, a list of such texts, or an '
        "object of names and values. All of them have to match."
    )
    comment: _Comment = ""
    starts_at: GivenTime | None = Field(default=None, description="By default now.")
    ends_at: GivenTime | None = None
    duration: _Duration = None

    def wanted(self, now: datetime) -> NewSilence:
        """Return what the silence is to be; raise InvalidError."""
        starts_at = self.starts_at or now
        return NewSilence(
            matchers=matchers_from(self.matchers, field="matchers"),
            comment=self.comment,
            starts_at=starts_at,
            ends_at=_needed(end_of(starts_at, self.ends_at, self.duration)),
        )


class SilenceChangeBody(Body):
    """Changes to a silence; omitted fields are kept."""

    comment: _Comment | None = None
    ends_at: GivenTime | None = None
    duration: Annotated[
        Text | None,
        Field(description="A length such as `30m` or `2h`, from now on. Instead of `ends_at`."),
    ] = None

    def wanted(self, now: datetime) -> SilenceChange:
        """Return what changes; raise InvalidError."""
        return SilenceChange(ends_at=end_of(now, self.ends_at, self.duration), comment=self.comment)


def end_of(begin: datetime, ends_at: datetime | None, duration: str | None) -> datetime | None:
    """Return the end that was given in one of two ways, or None; raise InvalidError."""
    if duration is None:
        return ends_at
    if ends_at is not None:
        message = "Send ends_at or duration, not both."
        raise InvalidError(message, field="duration")
    return later(begin, parse_duration(duration, field="duration"), field="duration")


def later(moment: datetime, length: timedelta, *, field: str) -> datetime:
    """Return a moment that lies later; raise InvalidError for one beyond all calendars."""
    try:
        return moment + length
    except OverflowError as error:
        message = "That is too far in the future."
        raise InvalidError(message, field=field) from error


def _needed(end: datetime | None) -> datetime:
    if end is None:
        message = "Send the end of the silence: ends_at, or a duration such as 2h."
        raise InvalidError(message, field="ends_at")
    return end


class Silence(Resource):
    """A silence: alerts that it matches page nobody from its start to its end."""

    id: int
    matchers: list[str]
    comment: str
    state: State
    starts_at: Time
    ends_at: Time
    created_at: Time
    created_by: str | None = Field(description="A user name; null for the command line.")
    ended_by: str | None = Field(description="Who ended it before its time.")
    web_url: str

    @classmethod
    def of(cls, view: SilenceView, *, now: datetime, web_url: str) -> "Silence":
        """Present a silence."""
        return cls(
            id=view.id,
            matchers=[str(matcher) for matcher in view.matchers],
            comment=view.comment,
            state=view.state(now).value,
            starts_at=view.starts_at,
            ends_at=view.ends_at,
            created_at=view.created_at,
            created_by=view.created_by or None,
            ended_by=view.ended_by or None,
            web_url=web_url,
        )


class PreviewQuery(Query):
    """Whose alerts to look for."""

    matchers: Annotated[Text, Field(max_length=LONGEST_TEXT)] = Field(
        description='Such as `service="web", host=~"web.*"`.'
    )

    @property
    def read(self) -> tuple[Matcher, ...]:
        """The matchers; raises InvalidError."""
        return matchers_from(self.matchers, field="matchers")


class PreviewAlert(Resource):
    """An alert that the matchers match."""

    iid: int
    title: str
    severity: Annotated[str, one_of(*(each.value for each in Severity))]
    status: Annotated[str, one_of(*STATUSES)]
    started_at: Time
    web_url: str

    @classmethod
    def of(cls, alert: PreviewedAlert, web_url: str) -> "PreviewAlert":
        """Present an alert."""
        return cls(
            iid=alert.iid,
            title=alert.title,
            severity=alert.severity,
            status=alert.status,
            started_at=alert.started_at,
            web_url=web_url,
        )


class SilencePreview(Resource):
    """What a silence would mute now, and would have muted in the last seven days."""

    matchers: list[str]
    open_alerts: int
    recent_alerts: int = Field(description="Of the last seven days, open or not.")
    looked_at: int = Field(description="How many alerts were compared, the newest ones.")
    is_complete: bool = Field(description="Whether all alerts were compared.")
    alerts: list[PreviewAlert] = Field(description="The newest that match, at most 20.")

    @classmethod
    def of(
        cls, found: Preview, matchers: tuple[Matcher, ...], url_of: Callable[[int], str]
    ) -> "SilencePreview":
        """Present a preview."""
        return cls(
            matchers=[str(matcher) for matcher in matchers],
            open_alerts=found.open_alerts,
            recent_alerts=found.recent_alerts,
            looked_at=found.looked_at,
            is_complete=not found.is_cut,
            alerts=[PreviewAlert.of(alert, url_of(alert.iid)) for alert in found.alerts],
        )


class AlertMute(Resource):
    """What holds the pages of an alert back."""

    muted: bool
    kind: Annotated[str, one_of(*(each.value for each in MuteKind))] | None = None
    id: int | None = Field(
        default=None, description="Of the silence or maintenance window; null for others."
    )
    name: str | None = None
    by: str | None = Field(
        default=None,
        description="Who made the silence or window, or acknowledged the alert that this one "
        "continues.",
    )
    until: Time | None = None

    @classmethod
    def of(cls, mute: Mute | None) -> "AlertMute":
        """Present what holds the pages back, or that nothing does."""
        if mute is None:
            return cls(muted=False)
        return cls(
            muted=True,
            kind=mute.kind.value,
            id=mute.id if mute.kind in {MuteKind.SILENCE, MuteKind.MAINTENANCE} else None,
            name=mute.name,
            by=mute.by or None,
            until=mute.until,
        )
