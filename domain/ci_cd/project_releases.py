"""Releases of a project: a tag, its notes, and links to its files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.ci_cd.people import Reporter, reporters
from domain.database.paging import Listed, ListPart, fetch_part
from domain.errors import ConflictError, InvalidError, NotFoundError, TakenError
from models import ProjectRelease, ReleaseLink

_SCHEMES = frozenset({"http", "https", "ftp"})
_ORDERS = {
    "id": ProjectRelease.id,
    "released_at": ProjectRelease.released_at,
    "created_at": ProjectRelease.id,  # in the order of ids as well
}
MOST_LINKS = 100


@dataclass(frozen=True, kw_only=True)
class LinkDetails:
    """A link to a file of a release."""

    name: str
    url: str
    link_type: str = "other"


@dataclass(frozen=True, kw_only=True)
class LinkView(LinkDetails):
    """A stored link."""

    id: int


@dataclass(frozen=True, kw_only=True)
class ReleaseDetails:
    """A new release."""

    tag_name: str
    name: str
    description: str
    ref: str | None
    released_at: datetime
    user_id: int
    links: tuple[LinkDetails, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReleaseView:
    """A release with its links."""

    tag_name: str
    name: str
    description: str
    ref: str | None
    created_at: datetime
    released_at: datetime
    author: Reporter | None
    links: tuple[LinkView, ...]


def list_releases(project_id: int, part: ListPart, *, session: Session) -> Listed[ReleaseView]:
    """Return a part of a project's releases."""
    statement = select(ProjectRelease).where(ProjectRelease.project_id == project_id)
    found = fetch_part(statement, _ORDERS, part, session=session)
    views = _views([row[0] for row in found.items], session=session)
    return Listed(items=views, total=found.total, next_cursor=found.next_cursor)


def get_release(project_id: int, tag_name: str, *, session: Session) -> ReleaseView:
    """Return the release of a tag, or raise NotFoundError."""
    (view,) = _views([_get(project_id, tag_name, session=session)], session=session)
    return view


def get_latest(project_id: int, *, session: Session) -> ReleaseView:
    """Return the release that was released last, or raise NotFoundError."""
    row = session.scalar(
        select(ProjectRelease)
        .where(ProjectRelease.project_id == project_id)
        .order_by(ProjectRelease.released_at.desc(), ProjectRelease.id.desc())
        .limit(1)
    )
    if row is None:
        message = "This project has no releases."
        raise NotFoundError(message)
    (view,) = _views([row], session=session)
    return view


def _get(project_id: int, tag_name: str, *, session: Session) -> ProjectRelease:
    row = session.scalar(
        select(ProjectRelease).where(
            ProjectRelease.project_id == project_id,
            ProjectRelease.tag_name == tag_name.replace("\x00", "\ufffd"),
        )
    )
    if row is None:
        message = "Release not found in this project."
        raise NotFoundError(message)
    return row


def create_release(
    project_id: int, details: ReleaseDetails, *, session: Session, now: datetime
) -> ReleaseView:
    """Store a release with its links; raise ConflictError if the tag has one."""
    if len(details.links) > MOST_LINKS:
        message = f"A release can have at most {MOST_LINKS} links."
        raise InvalidError(message, field="assets")
    row = ProjectRelease(
        project_id=project_id,
        tag_name=details.tag_name,
        name=details.name,
        description=details.description,
        ref=details.ref,
        user_id=details.user_id,
        created_at=now,
        released_at=details.released_at,
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        message = f"The tag {details.tag_name} already has a release."
        raise ConflictError(message, field="tag_name") from error
    for link in details.links:
        _add_link(row.id, link, session=session)
    return get_release(project_id, details.tag_name, session=session)


def change_release(
    project_id: int, tag_name: str, changes: Mapping[str, Any], *, session: Session
) -> ReleaseView:
    """Change name, description or released_at of a release."""
    row = _get(project_id, tag_name, session=session)
    for name, value in changes.items():
        setattr(row, name, value)
    session.flush()
    return get_release(project_id, tag_name, session=session)


def delete_release(project_id: int, tag_name: str, *, session: Session) -> ReleaseView:
    """Delete a release and its links, and return it; the tag stays."""
    view = get_release(project_id, tag_name, session=session)
    session.delete(_get(project_id, tag_name, session=session))
    return view


def get_link(project_id: int, tag_name: str, link_id: int, *, session: Session) -> LinkView:
    """Return a link of a release, or raise NotFoundError."""
    return _link_view(_get_link(project_id, tag_name, link_id, session=session))


def _get_link(project_id: int, tag_name: str, link_id: int, *, session: Session) -> ReleaseLink:
    release = _get(project_id, tag_name, session=session)
    row = session.scalar(
        select(ReleaseLink).where(ReleaseLink.release_id == release.id, ReleaseLink.id == link_id)
    )
    if row is None:
        message = "Link not found in this release."
        raise NotFoundError(message)
    return row


def add_link(project_id: int, tag_name: str, details: LinkDetails, *, session: Session) -> LinkView:
    """Add a link to a release."""
    view = get_release(project_id, tag_name, session=session)
    if len(view.links) >= MOST_LINKS:
        message = f"A release can have at most {MOST_LINKS} links."
        raise InvalidError(message, field="url")
    release = _get(project_id, tag_name, session=session)
    return _link_view(_add_link(release.id, details, session=session))


def _add_link(release_id: int, details: LinkDetails, *, session: Session) -> ReleaseLink:
    row = ReleaseLink(release_id=release_id)
    _set(row, details)
    _store_link(row, session=session)
    return row


def change_link(
    project_id: int, tag_name: str, link_id: int, changes: Mapping[str, Any], *, session: Session
) -> LinkView:
    """Change a link of a release; what is not named stays."""
    row = _get_link(project_id, tag_name, link_id, session=session)
    now = {"name": row.name, "url": row.url, "link_type": row.link_type}
    details = LinkDetails(**{**now, **changes})
    try:
        with session.begin_nested():
            _set(row, details)
            session.flush()
    except IntegrityError as error:
        raise _taken() from error
    return _link_view(row)


def delete_link(project_id: int, tag_name: str, link_id: int, *, session: Session) -> LinkView:
    """Delete a link of a release, and return it."""
    row = _get_link(project_id, tag_name, link_id, session=session)
    session.delete(row)
    return _link_view(row)


def _set(row: ReleaseLink, details: LinkDetails) -> None:
    row.name, row.url = details.name, _checked_url(details.url)
    row.link_type = details.link_type


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in _SCHEMES or not parts.netloc or not _is_plain(url):
        message = "url must be a URL with http, https or ftp"
        raise InvalidError(message, field="url")
    return url


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url


def _store_link(row: ReleaseLink, *, session: Session) -> None:
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise _taken() from error


def _taken() -> TakenError:
    message = "The release already has a link with this name or URL."
    return TakenError(message, field="name")


def _views(rows: Iterable[ProjectRelease], *, session: Session) -> tuple[ReleaseView, ...]:
    releases = tuple(rows)
    people = reporters((row.user_id for row in releases), session=session)
    links: dict[int, list[LinkView]] = {}
    found = session.scalars(
        select(ReleaseLink)
        .where(ReleaseLink.release_id.in_([row.id for row in releases]))
        .order_by(ReleaseLink.id)
    )
    for link in found:
        links.setdefault(link.release_id, []).append(_link_view(link))
    return tuple(
        ReleaseView(
            tag_name=row.tag_name,
            name=row.name,
            description=row.description,
            ref=row.ref,
            created_at=row.created_at,
            released_at=row.released_at,
            author=people.get(row.user_id),
            links=tuple(links.get(row.id, ())),
        )
        for row in releases
    )


def _link_view(row: ReleaseLink) -> LinkView:
    return LinkView(id=row.id, name=row.name, url=row.url, link_type=row.link_type)
