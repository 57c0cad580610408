"""Actions on the releases of a project, with their notes and links to files."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field
from sqlalchemy import Select, select
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts.profiles import UserReference, find_user_references
from domain.core.database.pagination import fetch_list_page
from domain.core.errors import ConflictError, InvalidError, NotFoundError, TakenError
from domain.core.types.base import (
    Body,
    GitLabQuery,
    RequestTime,
    Resource,
    Text,
    Time,
    WithoutEffect,
    get_column_values,
)
from domain.core.types.pagination import ListPage, OffsetQuery, PagedQuery
from domain.projects.views import ProjectView
from models import ProjectRelease as ReleaseRow
from models import ReleaseLink as LinkRow

LinkType = Literal["other", "runbook", "image", "package"]
_Name = Annotated[Text, Field(min_length=1, max_length=255)]
_MAX_DESCRIPTION_LENGTH = 1_000_000
MAX_LINKS = 100
_URL_SCHEMES = frozenset({"http", "https", "ftp"})
_SORT_COLUMNS = {
    "id": ReleaseRow.id,
    "released_at": ReleaseRow.released_at,
    "created_at": ReleaseRow.id,  # Ids increase with the creation time.
}


class ReleaseQuery(PagedQuery, GitLabQuery):
    """Query parameters for a list of releases."""

    order_by: str = Field(default="released_at", pattern="^(?:id|released_at|created_at)$")
    include_html_description: WithoutEffect = ""


class LinkQuery(OffsetQuery, GitLabQuery):
    """Query parameters for a list of links."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class NewLink(Body):
    """Request body for adding a link to a release."""

    name: _Name
    url: Annotated[Text, Field(min_length=1, max_length=2048)]
    link_type: LinkType = "other"


class LinkChange(Body):
    """Request body for changing a link of a release. Fields that are null are not changed."""

    name: _Name | None = None
    url: Annotated[Text, Field(min_length=1, max_length=2048)] | None = None
    link_type: LinkType | None = None


class Assets(Body):
    """Links to the files of a new release."""

    links: Annotated[tuple[NewLink, ...], Field(max_length=MAX_LINKS)] = ()


class NewRelease(Body):
    """Request body for creating a release for a tag."""

    tag_name: _Name
    name: Annotated[Text, Field(max_length=255)] = Field(
        default="", description="Name of the release. The default is the name of the tag."
    )
    description: Annotated[Text, Field(max_length=_MAX_DESCRIPTION_LENGTH)] = Field(
        default="", description="Release notes in Markdown."
    )
    ref: Annotated[Text, Field(max_length=255)] | None = None
    released_at: RequestTime | None = None
    assets: Assets = Assets()


class ReleaseChange(Body):
    """Request body for changing a release. Fields that are null are not changed."""

    name: Annotated[Text, Field(max_length=255)] | None = None
    description: Annotated[Text, Field(max_length=_MAX_DESCRIPTION_LENGTH)] | None = None
    released_at: RequestTime | None = None


class ReleaseLink(Resource):
    """A link from a release to a file."""

    id: int
    name: str
    url: str
    direct_asset_url: str
    link_type: LinkType
    external: bool | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        deprecated=True,
        description="Always true. Removed in release 16.0.",
    )


class ReleaseAssets(Resource):
    """The links to the files of a release, and the number of links."""

    count: int
    links: tuple[ReleaseLink, ...]


class ProjectRelease(Resource):
    """A release of a project, with its notes and links to files."""

    tag_name: str
    name: str
    description: str
    created_at: Time
    released_at: Time
    upcoming_release: bool
    author: UserReference | None
    assets: ReleaseAssets


@read_action("releases.index")
def list_releases(
    work: UnitOfWork, project: ProjectView, query: ReleaseQuery
) -> ListPage[ProjectRelease]:
    """List the releases of a project, latest first."""
    found = fetch_list_page(
        _build_releases_query(project), _SORT_COLUMNS, query.requested_range, session=work.session
    )
    items = _build_releases(work, [row[0] for row in found.items])
    return ListPage(items=items, total=found.total, next_cursor=found.next_cursor)


@read_action("releases.latest")
def show_latest_release(work: UnitOfWork, project: ProjectView) -> ProjectRelease:
    """Show the latest release.

    Raise NotFoundError if the project has no releases.
    """
    newest_first = (ReleaseRow.released_at.desc(), ReleaseRow.id.desc())
    row = work.session.scalar(_build_releases_query(project).order_by(*newest_first).limit(1))
    if row is None:
        raise NotFoundError("This project has no releases.")
    return _build_releases(work, [row])[0]


@read_action("releases.show")
def show_release(work: UnitOfWork, project: ProjectView, tag_name: str) -> ProjectRelease:
    """Show the release of a tag."""
    return _build_releases(work, [_get_release_row(work, project, tag_name)])[0]


@action("releases.create")
def create_release(work: UnitOfWork, project: ProjectView, new: NewRelease) -> ProjectRelease:
    """Create a release.

    Raise InvalidError for an invalid value. Raise ConflictError if the tag already has a release.
    """
    row = ReleaseRow(
        project_id=project.id,
        tag_name=new.tag_name,
        name=new.name or new.tag_name,
        description=new.description,
        ref=new.ref,
        user_id=work.actor.id,
        created_at=work.now,
        released_at=new.released_at or work.now,
    )
    try:
        with work.session.begin_nested():
            work.session.add(row)
    except IntegrityError as error:
        message = f"The tag {new.tag_name} already has a release."
        raise ConflictError(message, field="tag_name") from error
    for link in new.assets.links:
        _store_link(work, LinkRow(release_id=row.id), link.model_dump())
    return _build_releases(work, [row])[0]


@action("releases.edit")
def change_release(
    work: UnitOfWork, project: ProjectView, tag_name: str, change: ReleaseChange
) -> ProjectRelease:
    """Change the name, the notes or the date of a release."""
    row = _get_release_row(work, project, tag_name)
    for name, value in _find_changed_fields(change).items():
        setattr(row, name, value)
    work.session.flush()
    return _build_releases(work, [row])[0]


@action("releases.delete")
def delete_release(work: UnitOfWork, project: ProjectView, tag_name: str) -> ProjectRelease:
    """Delete a release and its links, but not its tag.

    The response contains the deleted release.
    """
    row = _get_release_row(work, project, tag_name)
    deleted = _build_releases(work, [row])[0]
    work.session.delete(row)
    return deleted


@read_action("releases.list_links")
def list_links(
    work: UnitOfWork, project: ProjectView, tag_name: str, query: LinkQuery
) -> ListPage[ReleaseLink]:
    """List the links of a release."""
    links = show_release(work, project, tag_name).assets.links
    return ListPage(items=links[query.offset : query.offset + query.page_size], total=len(links))


@read_action("releases.show_link")
def show_link(work: UnitOfWork, project: ProjectView, tag_name: str, link_id: int) -> ReleaseLink:
    """Show a release link."""
    return _build_link(_get_link_row(work, project, tag_name, link_id))


@action("releases.create_link")
def create_link(work: UnitOfWork, project: ProjectView, tag_name: str, new: NewLink) -> ReleaseLink:
    """Add a link to a release."""
    if len(show_release(work, project, tag_name).assets.links) >= MAX_LINKS:
        raise InvalidError(f"A release can have at most {MAX_LINKS} links.", field="url")
    release = _get_release_row(work, project, tag_name)
    return _store_link(work, LinkRow(release_id=release.id), new.model_dump())


@action("releases.edit_link")
def change_link(
    work: UnitOfWork, project: ProjectView, tag_name: str, link_id: int, change: LinkChange
) -> ReleaseLink:
    """Change a release link."""
    return _store_link(
        work, _get_link_row(work, project, tag_name, link_id), _find_changed_fields(change)
    )


@action("releases.delete_link")
def delete_link(work: UnitOfWork, project: ProjectView, tag_name: str, link_id: int) -> ReleaseLink:
    """Delete a release link.

    The response contains the deleted link.
    """
    row = _get_link_row(work, project, tag_name, link_id)
    work.session.delete(row)
    return _build_link(row)


def _find_changed_fields(change: Body) -> Mapping[str, Any]:
    """Return the fields that a request changes, leaving out null values."""
    return {name: value for name, value in change.given_values.items() if value is not None}


def _build_releases_query(project: ProjectView) -> Select[ReleaseRow]:
    return select(ReleaseRow).where(ReleaseRow.project_id == project.id)


def _get_release_row(work: UnitOfWork, project: ProjectView, tag_name: str) -> ReleaseRow:
    named = ReleaseRow.tag_name == tag_name.replace("\x00", "\ufffd")
    row: ReleaseRow | None = work.session.scalar(_build_releases_query(project).where(named))
    if row is None:
        raise NotFoundError("Release not found in this project.")
    return row


def _get_link_row(work: UnitOfWork, project: ProjectView, tag_name: str, link_id: int) -> LinkRow:
    release = _get_release_row(work, project, tag_name)
    row = work.session.scalar(
        select(LinkRow).where(LinkRow.release_id == release.id, LinkRow.id == link_id)
    )
    if row is None:
        raise NotFoundError("Link not found in this release.")
    return row


def _store_link(work: UnitOfWork, row: LinkRow, values: Mapping[str, Any]) -> ReleaseLink:
    """Store the values of a link.

    Raise InvalidError for an invalid URL. Raise TakenError if another link of the release has the
    same name or URL.
    """
    if "url" in values:
        _check_url(values["url"])
    try:
        with work.session.begin_nested():
            for name, value in values.items():
                setattr(row, name, value)
            work.session.add(row)
    except IntegrityError as error:
        message = "The release already has a link with this name or URL."
        raise TakenError(message, field="name") from error
    return _build_link(row)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _URL_SCHEMES or not parts.netloc or not is_plain:
        raise InvalidError("`url` must be a URL with http, https or ftp.", field="url")


def _build_releases(work: UnitOfWork, rows: Sequence[ReleaseRow]) -> Sequence[ProjectRelease]:
    ids = (row.user_id for row in rows if row.user_id)
    named = find_user_references(ids, base_url=work.settings.base_url, session=work.session)
    links: dict[int, list[ReleaseLink]] = {row.id: [] for row in rows}
    of_them = select(LinkRow).where(LinkRow.release_id.in_(links)).order_by(LinkRow.id)
    for link in work.session.scalars(of_them):
        links[link.release_id].append(_build_link(link))
    return [
        ProjectRelease(
            **get_column_values(row, ProjectRelease),
            upcoming_release=row.released_at > work.now,
            author=named.get(row.user_id or 0),
            assets=ReleaseAssets(count=len(links[row.id]), links=tuple(links[row.id])),
        )
        for row in rows
    ]


def _build_link(row: LinkRow) -> ReleaseLink:
    columns = get_column_values(row, ReleaseLink)
    return ReleaseLink(**columns, direct_asset_url=row.url, external=True)
