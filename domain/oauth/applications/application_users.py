"""Lists the users of an application, with the names that its owner may see."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.scopes import sort_scopes
from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_page
from domain.oauth.applications.rejected_requests import IDENTIFYING_SCOPES, ApplicationViewer
from domain.oauth.applications.types import ApplicationUser, ApplicationUserQuery
from domain.oauth.clients.application_lists import select_application_user_ids
from models import AccessToken, Authorization, Consent, User


def fetch_application_user_page(
    application_id: int,
    keyset_range: KeysetRange,
    *,
    viewer: ApplicationViewer,
    session: Session,
    now: datetime,
) -> KeysetPage[ApplicationUser]:
    """Return a page of users who gave an application access, newest accounts first."""
    users = _select_users(
        select_application_user_ids(application_id, now, keyset_range=keyset_range), session=session
    )
    found = fetch_page(users, User.id, keyset_range, session=session, view=lambda row: row)
    described = _build_users(application_id, found.items, viewer=viewer, session=session)
    return found.with_items(described)


def find_application_users(
    work: UnitOfWork, application_id: int, query: ApplicationUserQuery
) -> tuple[ApplicationUser, ...]:
    """Return one page of an application's users, newest accounts first."""
    session, offset, limit = work.session, query.offset, query.page_size
    viewer = ApplicationViewer(user_id=work.actor.id or 0, sees_everybody=work.actor.is_admin)
    people = select_application_user_ids(
        application_id, work.now, keyset_range=KeysetRange(size=limit), offset=offset
    )
    newest = (each.desc() for each in people.selected_columns)
    people = people.order_by(*newest).offset(offset).limit(limit)
    users = _select_users(people, session=session).order_by(User.id.desc())
    found = session.execute(users).all()
    return _build_users(application_id, found, viewer=viewer, session=session)


def _select_users(people: Select[int], *, session: Session) -> Select[int, str, str]:
    # Users are selected by ID. If Postgres has no statistics, it would otherwise read all users.
    ids = session.scalars(people).all()
    return select(User.id, User.username, User.name).where(User.id.in_(ids))


def _build_users(
    application_id: int,
    users: Sequence[Row[int, str, str]],
    *,
    viewer: ApplicationViewer,
    session: Session,
) -> tuple[ApplicationUser, ...]:
    ids = [user.id for user in users]
    scopes = _find_scopes(application_id, ids, session=session)
    since = _find_first_authorizations(application_id, ids, session=session)
    used = _find_last_uses(application_id, ids, session=session)
    return tuple(
        ApplicationUser(
            **_get_visible_names(user, scopes[user.id], viewer),
            scopes=sort_scopes(scopes[user.id]),
            authorized_at=since.get(user.id),
            last_used_at=used.get(user.id),
        )
        for user in users
    )


def _get_visible_names(
    user: Row[int, str, str], scopes: set[str], viewer: ApplicationViewer
) -> dict[str, str | None]:
    """Return the names of a user if the viewer may see them.

    Owners see the names that their application could read anyway.
    """
    may_know = (
        viewer.sees_everybody or user.id == viewer.user_id or bool(IDENTIFYING_SCOPES & scopes)
    )
    if not may_know:
        return {"username": None, "name": None}
    return {"username": user.username, "name": user.name}


def _find_scopes(
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


def _find_first_authorizations(
    application_id: int, user_ids: Sequence[int], *, session: Session
) -> dict[int, datetime]:
    """Return the time of each user's first stored authorization, by user ID."""
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


def _find_last_uses(
    application_id: int, user_ids: Sequence[int], *, session: Session
) -> dict[int, datetime]:
    """Return the last time at which a stored token was issued or used, by user ID."""
    moment = func.max(func.coalesce(AccessToken.last_used_at, AccessToken.created_at))
    rows = session.execute(
        select(AccessToken.user_id, moment)
        .where(AccessToken.application_id == application_id, AccessToken.user_id.in_(user_ids))
        .group_by(AccessToken.user_id)
    )
    return dict(rows.all())
