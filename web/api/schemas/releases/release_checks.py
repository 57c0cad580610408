"""What is handed to the release checker, and what it answers."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field

from domain.releases.changes import Certainty, Interface
from domain.releases.checker.checker import NEWEST
from domain.releases.checker.findings import Finding, Report
from domain.releases.version import Release, parse_release
from domain.types.base import Body, RequiredText, Resource, Text, columns_of
from web.api.schemas.releases.release_changes import release_text
from web.releases.listed import page_of


class ReleaseCheckBody(Body):
    """A text to check. As multipart/form-data, `file` is its content and has its name."""

    name: str = Field(
        default="",
        description="The name of the file, whose ending says what it is. Leave it out for a part "
        "of a file.",
    )
    content: RequiredText = Field(
        description="A HAR file, an access log, a list of requests, a GraphQL document, a CI file, "
        "or the source of a program."
    )
    release: Annotated[Text, AfterValidator(release_text)] = Field(
        default=str(NEWEST), description="What breaks in this release or before it."
    )

    @property
    def target(self) -> Release:
        """The release."""
        return parse_release(self.release)


class ReleaseFinding(Resource):
    """Something that breaks."""

    change: str = Field(description="The id of the change.")
    title: str
    release: str = Field(description="The release that it takes effect in.")
    interface: Interface
    line: int = Field(description="From 1.")
    certainty: Certainty = Field(
        description="`sure`, or `possible` if only a name or a part of the call was found, or only "
        "some of such requests fail or mean something else."
    )
    reason: str = Field(description="What was found, without values of the content.")
    replacement: str = Field(description="What to use instead.")
    url: str = Field(description="The page of the change.")

    @classmethod
    def of(cls, found: Finding) -> Self:
        """Present a finding."""
        shown = {**columns_of(found.change, cls), **columns_of(found, cls)}
        shown |= {"change": found.change.id, "url": page_of(found.change)}
        return cls.model_validate(shown)


class ReleaseCheck(Resource):
    """The findings in a text."""

    kind: str = Field(description="The detected type of the text.")
    release: str
    findings: list[ReleaseFinding]
    is_cut: bool = Field(description="Whether there are more findings than these.")

    @classmethod
    def of(cls, report: Report, release: Release) -> Self:
        """Present a report."""
        return cls(
            kind=report.kind,
            release=str(release),
            findings=[ReleaseFinding.of(each) for each in report.findings],
            is_cut=report.is_cut,
        )
