"""Releases of a project, with links to their files."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from domain.accounts.references import UserReference
from domain.ci_cd.project_releases import MOST_LINKS, LinkDetails, LinkView, ReleaseView
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
from web.services import settings

LinkType = Literal["other", "runbook", "image", "package"]
_Name = Annotated[Text, Field(min_length=1, max_length=255)]
_LONGEST_DESCRIPTION = 1_000_000


class ReleaseQuery(PagedQuery, GitLabQuery):
    """Which releases a list has, in which order."""

    order_by: str = Field(default="released_at", pattern="^(?:id|released_at|created_at)$")
    include_html_description: WithoutEffect = ""


class LinkQuery(OffsetQuery, GitLabQuery):
    """The parameters of a list of links."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class LinkBody(Body):
    """A new link."""

    name: _Name
    url: Annotated[Text, Field(min_length=1, max_length=2048)]
    link_type: LinkType = "other"

    @property
    def details(self) -> LinkDetails:
        """The link."""
        return LinkDetails(name=self.name, url=self.url, link_type=self.link_type)


class LinkChange(Body):
    """Changes to a link."""

    name: _Name | None = None
    url: Annotated[Text, Field(min_length=1, max_length=2048)] | None = None
    link_type: LinkType | None = None


class Assets(Body):
    """The files of a new release."""

    links: Annotated[tuple[LinkBody, ...], Field(max_length=MOST_LINKS)] = ()


class ReleaseBody(Body):
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

    @classmethod
    def of(cls, view: LinkView) -> "ReleaseLink":
        """Present a link with the fields of all releases."""
        return cls.model_validate(
            {
                "id": view.id,
                "name": view.name,
                "url": view.url,
                "direct_asset_url": view.url,
                "link_type": view.link_type,
                "external": True,
            }
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

    @classmethod
    def of(cls, view: ReleaseView, *, now: datetime) -> "ProjectRelease":
        """Present a release of a project with the fields of all releases."""
        return cls(
            tag_name=view.tag_name,
            name=view.name,
            description=view.description,
            created_at=view.created_at,
            released_at=view.released_at,
            upcoming_release=view.released_at > now,
            author=UserReference.of(view.author, settings().base_url) if view.author else None,
            assets=ReleaseAssets(
                count=len(view.links),
                links=tuple(ReleaseLink.of(each) for each in view.links),
            ),
        )
