"""Changes of the release schedule."""

import datetime as dt
from typing import Annotated

from pydantic import AfterValidator, Field

from domain.releases.changes import Interface, Kind
from domain.releases.listing import ChangeFilter, State
from domain.releases.version import Release, parse_release
from domain.types.base import OffsetQuery, PageSize, Query, Resource, Text, columns_of
from web.releases.listed import ListedChange

#: All of them are on one page.
_LARGEST_PAGE = 100


def release_text(text: str) -> str:
    """Return the text of a release; raise ValueError for any other."""
    try:
        parse_release(text)
    except ValueError as error:
        message = "must be a release such as 18.0"
        raise ValueError(message) from error
    return text


class ReleaseFilterQuery(Query):
    """Which changes a list or a feed has."""

    release: Annotated[Text, AfterValidator(release_text)] | None = Field(
        default=None, description="The release that they take effect in, such as 18.0."
    )
    interface: Interface | None = None
    state: State | None = Field(
        default=None,
        description="In the running release: in force, announced, or of an interface that this "
        "service does not have.",
    )

    @property
    def wanted(self) -> ChangeFilter:
        """The filter."""
        release: Release | None = parse_release(self.release) if self.release else None
        return ChangeFilter(release=release, interface=self.interface, state=self.state)


class ReleaseChangeQuery(OffsetQuery, ReleaseFilterQuery):
    """Which changes a list has, by page."""

    per_page: PageSize = _LARGEST_PAGE


class ReleaseChange(Resource):
    """A change of an interface in a release."""

    id: str
    release: str = Field(description="The release that it takes effect in.")
    date: dt.date | None = Field(description="The day of the release, where it was entered.")
    interface: Interface
    kind: Kind
    state: State
    title: str
    matches: tuple[str, ...] = Field(description="What it concerns.")
    after: str = Field(description="What happens from the release on.")
    replacement: str = Field(description="What to use instead.")
    hosted: bool = Field(description="Whether this service has the interface.")
    announced: str | None = Field(description="The release of the announcement, where stated.")
    end_of_support: str | None = Field(description="The release of the end of support.")
    url: str = Field(description="The page of the change.")

    @classmethod
    def of(cls, listed: ListedChange) -> "ReleaseChange":
        """Present a change."""
        shown = {
            **columns_of(listed.change, cls),
            **columns_of(listed, cls),
            "date": listed.day,
            "matches": tuple(map(str, listed.change.matches)),
        }
        return cls.model_validate(shown)
