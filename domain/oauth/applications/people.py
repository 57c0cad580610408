"""Lists the users of an application, with the names that its owner may see."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import Session

from domain.access.scopes import in_order
from domain.core.database.paging import Page, Slice, fetch_page
from domain.oauth.applications.refusals import IDENTIFYING, Viewer
from domain.oauth.applications.types import ApplicationUser
from domain.oauth.clients.directory import people_of
from models import AccessToken, Authorization, Consent, User


def page_of_people(
    application_id: int, part: Slice, *, viewer: Viewer, session: Session, now: datetime
) -> Page[ApplicationUser]:
    """Return a page of users with a grant, a consent or a token, newest accounts first."""
    users = _users_of(people_of(application_id, now, part=part), session=session)
    found = fetch_page(users, User.id, part, session=session, view=lambda row: row)
    described = _described(application_id, found.items, viewer=viewer, session=session)
    return found.with_items(described)


def list_people(
    application_id: int,
    *,
    viewer: Viewer,
    session: Session,
    now: datetime,
    offset: int,
    limit: int,
) -> tuple[ApplicationUser, ...]:
    """Return up to `limit` users from an offset, newest accounts first."""
    people = people_of(application_id, now, part=Slice(size=limit), offset=offset)
    newest = (each.desc() for each in people.selected_columns)
    people = people.order_by(*newest).offset(offset).limit(limit)
    users = _users_of(people, session=session).order_by(User.id.desc())
    found = session.execute(users).all()
    return _described(application_id, found, viewer=viewer, session=session)


def _users_of(people: Select[int], *, session: Session) -> Select[int, str, str]:
    # Selected by id: without statistics, the planner would read all users to find a few.
    ids = session.scalars(people).all()
    return select(User.id, User.username, User.name).where(User.id.in_(ids))


def _described(
    application_id: int, users: Sequence[Row[int, str, str]], *, viewer: Viewer, session: Session
) -> tuple[ApplicationUser, ...]:
    ids = [user.id for user in users]
    scopes = _scopes(application_id, ids, session=session)
    since = _moments(application_id, ids, session=session)
    used = _uses(application_id, ids, session=session)
    return tuple(
        ApplicationUser(
            **_names(user, scopes[user.id], viewer),
            scopes=in_order(scopes[user.id]),
            authorized_at=since.get(user.id),
            last_used_at=used.get(user.id),
        )
        for user in users
    )


def _names(user: Row[int, str, str], scopes: set[str], viewer: Viewer) -> dict[str, str | None]:
    """Return the names of a user if the viewer may see them.

    Owners see the names that their application could read anyway.
    """
    may_know = viewer.sees_everybody or user.id == viewer.user_id or bool(IDENTIFYING & scopes)
    if not may_know:
        return {"username": None, "name": None}
    return {"username": user.username, "name": user.name}


def _scopes(
    application_id: int, user_ids: Sequence[int], *, session: Session
) -> dict[int, set[str]]:
    found: dict[int, set[str]] = defaultdict(set)
    for table in (Authorization, Consent):
        rows = session.execute(
            select(table.user_id, table.scopes).where(
                table.application_id == application_id, table.user_id.in_(user_ids)
            )
        )
        for user_id, text in rows:
            found[user_id].update(text.split())
    return found


def _moments(
    application_id: int, user_ids: Sequence[int], *, session: Session
) -> dict[int, datetime]:
    """Return the stored time when each user first authorized the application."""
    found: dict[int, datetime] = {}
    for table in (Authorization, Consent):
        rows = session.execute(
            select(table.user_id, func.min(table.created_at))
            .where(table.application_id == application_id, table.user_id.in_(user_ids))
            .group_by(table.user_id)
        )
        for user_id, moment in rows:
            found[user_id] = min(moment, found.get(user_id, moment))
    return found


def _uses(application_id: int, user_ids: Sequence[int], *, session: Session) -> dict[int, datetime]:
    """Return the stored time when a token of each user was last issued or used."""
    moment = func.max(func.coalesce(AccessToken.last_used_at, AccessToken.created_at))
    rows = session.execute(
        select(AccessToken.user_id, moment)
        .where(AccessToken.application_id == application_id, AccessToken.user_id.in_(user_ids))
        .group_by(AccessToken.user_id)
    )
    return dict(rows.all())
