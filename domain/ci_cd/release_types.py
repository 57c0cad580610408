"""Releases of a project, with links to their files."""

from typing import Annotated, Literal

from pydantic import Field

from domain.accounts.references import UserReference
from domain.types.base import (
    Body,
    GitLabQuery,
    GivenTime,
    OffsetQuery,
    PagedQuery,
    Resource,
    Text,
    Time,
    WithoutEffect,
)

LinkType = Literal["other", "runbook", "image", "package"]
_Name = Annotated[Text, Field(min_length=1, max_length=255)]
_LONGEST_DESCRIPTION = 1_000_000
MOST_LINKS = 100


class ReleaseQuery(PagedQuery, GitLabQuery):
    """Which releases a list has, in which order."""

    order_by: str = Field(default="released_at", pattern="^(?:id|released_at|created_at)$")
    include_html_description: WithoutEffect = ""


class LinkQuery(OffsetQuery, GitLabQuery):
    """The parameters of a list of links."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class NewLink(Body):
    """A new link."""

    name: _Name
    url: Annotated[Text, Field(min_length=1, max_length=2048)]
    link_type: LinkType = "other"


class LinkChange(Body):
    """Changes to a link."""

    name: _Name | None = None
    url: Annotated[Text, Field(min_length=1, max_length=2048)] | None = None
    link_type: LinkType | None = None


class Assets(Body):
    """The files of a new release."""

    links: Annotated[tuple[NewLink, ...], Field(max_length=MOST_LINKS)] = ()


class NewRelease(Body):
    """A new release."""

    tag_name: _Name
    name: Annotated[Text, Field(max_length=255)] = Field(
        default="", description="The tag's name, if none is given."
    )
    description: Annotated[Text, Field(max_length=_LONGEST_DESCRIPTION)] = Field(
        default="", description="Markdown."
    )
    ref: Annotated[Text, Field(max_length=255)] | None = None
    released_at: GivenTime | None = None
    assets: Assets = Assets()


class ReleaseChange(Body):
    """Changes to a release."""

    name: Annotated[Text, Field(max_length=255)] | None = None
    description: Annotated[Text, Field(max_length=_LONGEST_DESCRIPTION)] | None = None
    released_at: GivenTime | None = None


class ReleaseLink(Resource):
    """A link to a file of a release."""

    id: int
    name: str
    url: str
    direct_asset_url: str
    link_type: LinkType
    external: bool | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        deprecated=True,
        description="Always true; removed in release 16.0.",
    )


class ReleaseAssets(Resource):
    """The files of a release."""

    count: int
    links: tuple[ReleaseLink, ...]


class ProjectRelease(Resource):
    """A release of a project."""

    tag_name: str
    name: str
    description: str
    created_at: Time
    released_at: Time
    upcoming_release: bool
    author: UserReference | None
    assets: ReleaseAssets
