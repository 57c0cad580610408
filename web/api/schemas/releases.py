"""Schemas of the release schedule: changes, checks, affected consumers and rehearsals."""

import datetime as dt
from itertools import groupby
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from domain.core.types.base import (
    Body,
    Query,
    RequiredText,
    Resource,
    Text,
    Time,
    build_choices_schema,
    get_column_values,
)
from domain.core.types.pagination import OffsetQuery, PageSize
from domain.releases.changes import Certainty, Interface, ReleaseChangeKind
from domain.releases.checker.findings import CheckReport, Finding
from domain.releases.checker.text_checks import NEWEST_RELEASE
from domain.releases.scheduled_changes import ChangeFilter, ReleaseChangeState
from domain.releases.usage.consumers import ConsumerKind
from domain.releases.usage.usage_reports import AffectedUsage
from domain.releases.version import Release, parse_release
from web.releases.rehearsal import Rehearsal
from web.releases.schedule_view import ListedChange, build_change_url

#: Default page size, which is the maximum, so that all changes fit on one page.
_MAX_PAGE_SIZE = 100


def validate_release_text(text: str) -> str:
    """Check that the text is a release number, such as `18.0`, and return the text.

    Raise ValueError if the text is not a release number.
    """
    try:
        parse_release(text)
    except ValueError as error:
        raise ValueError("must be a release such as 18.0") from error
    return text


class ReleaseFilterQuery(Query):
    """Filter parameters for the changes in a list or feed."""

    release: Annotated[Text, AfterValidator(validate_release_text)] | None = Field(
        default=None, description="Release in which the changes take effect, such as 18.0."
    )
    interface: Interface | None = None
    state: ReleaseChangeState | None = Field(
        default=None,
        description="State of the change in the running release. `not_hosted` means that this "
        "service does not provide the interface.",
    )

    @property
    def change_filter(self) -> ChangeFilter:
        """Change filter that the query parameters specify."""
        release: Release | None = parse_release(self.release) if self.release else None
        return ChangeFilter(release=release, interface=self.interface, state=self.state)


class ReleaseChangeQuery(OffsetQuery, ReleaseFilterQuery):
    """Filter and pagination parameters for a list of changes."""

    per_page: PageSize = _MAX_PAGE_SIZE


class ReleaseChange(Resource):
    """Interface change in a release."""

    id: str
    release: str = Field(description="Release in which the change takes effect.")
    date: dt.date | None = Field(description="Date of the release. Null if no date is set.")
    interface: Interface
    kind: ReleaseChangeKind
    state: ReleaseChangeState
    title: str
    matches: tuple[str, ...] = Field(description="Calls and names that the change affects.")
    after: str = Field(description="Behavior from this release on.")
    replacement: str = Field(description="Replacement for the interface.")
    hosted: bool = Field(
        description="True if this service provides the interface that the change affects."
    )
    announced: str | None = Field(description="Release that announced the change. Null if unknown.")
    end_of_support: str | None = Field(description="Release in which support ends.")
    url: str = Field(description="URL of the page about the change.")

    @classmethod
    def from_listed_change(cls, listed_change: ListedChange) -> "ReleaseChange":
        """Return a change as a resource, with its state, its date and the URL of its page."""
        shown = {
            **get_column_values(listed_change.change, cls),
            **get_column_values(listed_change, cls),
            "date": listed_change.day,
            "matches": tuple(map(str, listed_change.change.matches)),
        }
        return cls.model_validate(shown)


class ReleaseCheckBody(Body):
    """Text to check. In multipart/form-data, `file` provides the content and the name."""

    name: str = Field(
        default="",
        description="File name. The extension determines the type of the content. Omit the name if "
        "the content is only a part of a file.",
    )
    content: RequiredText = Field(
        description="Text to check: a HAR file, an access log, a list of requests, a GraphQL "
        "document, a CI file, or the source of a program."
    )
    release: Annotated[Text, AfterValidator(validate_release_text)] = Field(
        default=str(NEWEST_RELEASE),
        description="Release for which the content is checked. Changes up to this release are "
        "reported.",
    )

    @property
    def target_release(self) -> Release:
        """Release for which the text is checked."""
        return parse_release(self.release)


class ReleaseFinding(Resource):
    """Finding of the release checker: a change, and the line that the change affects."""

    change: str = Field(description="ID of the change.")
    title: str
    release: str = Field(description="Release in which the change takes effect.")
    interface: Interface
    line: int = Field(description="Line number of the finding, starting at 1.")
    request: int | None = Field(
        description="Position of the request in a HAR file, starting at 1. Null for other content."
    )
    certainty: Certainty = Field(
        description="Certainty of the finding. `possible` means that only a name or a part of the "
        "call was found, or that only some of the requests fail or change their meaning."
    )
    reason: str = Field(description="Reason for the finding, without values from the content.")
    replacement: str = Field(description="Replacement for the interface.")
    url: str = Field(description="URL of the page about the change.")

    @classmethod
    def from_finding(cls, finding: Finding) -> Self:
        """Return a finding of the release checker as a resource."""
        shown = {**get_column_values(finding.change, cls), **get_column_values(finding, cls)}
        shown |= {"change": finding.change.id, "url": build_change_url(finding.change)}
        return cls.model_validate(shown)


class ReleaseCheck(Resource):
    """Result of a release check, with the findings."""

    kind: str = Field(description="Detected type of the text.")
    release: str
    findings: list[ReleaseFinding]
    is_cut: bool = Field(description="True if there are more findings than are listed.")

    @classmethod
    def from_report(cls, report: CheckReport, release: Release) -> Self:
        """Return a report of the release checker as a resource."""
        return cls(
            kind=report.kind,
            release=str(release),
            findings=[ReleaseFinding.from_finding(each) for each in report.findings],
            is_cut=report.is_truncated,
        )


class UsageQuery(OffsetQuery):
    """Scope and pagination parameters for a list of affected calls."""

    #: Calls to list. Only administrators can use `all`, which covers the whole instance.
    scope: Literal["mine", "all"] = "mine"


class ConsumerResource(Resource):
    """Consumer of the API, with its kind, name and owner."""

    kind: Annotated[str, build_choices_schema(*ConsumerKind)]
    #: ID of the application, the token or the user. Null for requests without a token.
    id: int | None
    name: str
    #: Username, or path of a project or group. Empty for instance-wide applications.
    owner: str


class UsageResource(Resource):
    """A consumer's API calls that are affected by a change."""

    change: str
    release: str
    title: str
    replacement: str
    #: Certainty of the effect. `possible` means that the effect depends on how the caller uses the
    #: response.
    certainty: Annotated[str, build_choices_schema("sure", "possible")]
    consumer: ConsumerResource
    calls: int
    operations: list[str]
    first_called_at: Time
    last_called_at: Time
    #: Last IP address of the caller. Several users may share an application, so only
    #: administrators can see the last address for an application.
    last_address: str | None

    @classmethod
    def from_usage(cls, use: AffectedUsage) -> "UsageResource":
        """Create a resource from the calls that a change affects."""
        return cls(
            change=use.change.id,
            release=use.change.release,
            title=use.change.title,
            replacement=use.change.replacement,
            consumer=ConsumerResource.model_validate(use.consumer),
            **build_call_fields(use),
        )


def build_call_fields(use: AffectedUsage) -> dict[str, Any]:
    """Return the fields that describe the affected calls, including call times."""
    return {
        "certainty": use.certainty,
        "calls": use.calls,
        "operations": list(use.operations),
        "first_called_at": use.first_at,
        "last_called_at": use.last_at,
        "last_address": use.last_address,
    }


#: Maximum number of affected uses that a rehearsal lists.
_MAX_USES = 100


class RehearsedConsumer(ConsumerResource):
    """Consumer with its affected calls."""

    certainty: Annotated[str, build_choices_schema("sure", "possible")]
    calls: int
    operations: list[str]
    first_called_at: Time
    last_called_at: Time
    last_address: str | None

    @classmethod
    def from_usage(cls, use: AffectedUsage) -> "RehearsedConsumer":
        """Return a consumer and its affected calls as a resource."""
        return cls(**get_column_values(use.consumer, cls), **build_call_fields(use))


class RehearsedChange(Resource):
    """Scheduled API change, with the consumers that it affects."""

    change: str
    release: str
    title: str
    replacement: str
    consumers: list[RehearsedConsumer]


class ReleaseRehearsal(Resource):
    """Effects that switching to another release would have on recorded API calls."""

    running: str = Field(description="Release that is running now.")
    release: str
    breaks: int = Field(description="Number of uses that are certain to be affected.")
    tokens_given_expiry: int = Field(
        description="Number of access tokens that would be given an expiry date."
    )
    changes: list[RehearsedChange] = Field(
        description=(
            "Scheduled changes, with at most 100 consumers in total. `GET "
            "/releases/usage?scope=all` lists all consumers."
        )
    )

    @classmethod
    def from_rehearsal(
        cls, rehearsal: Rehearsal, *, maximum: int | None = _MAX_USES
    ) -> "ReleaseRehearsal":
        """Return a rehearsal as a resource with at most `maximum` affected consumers.

        If `maximum` is None, the resource contains all affected consumers.
        """
        by_change = sorted(rehearsal.uses[:maximum], key=lambda use: use.change.id)
        return cls(
            running=str(rehearsal.running),
            release=str(rehearsal.release),
            breaks=len(rehearsal.breaking_usages),
            tokens_given_expiry=rehearsal.endless_tokens,
            changes=[
                RehearsedChange(
                    **get_column_values(change, RehearsedChange),
                    change=change.id,
                    consumers=[RehearsedConsumer.from_usage(use) for use in uses],
                )
                for change, uses in groupby(by_change, lambda use: use.change)
            ],
        )
