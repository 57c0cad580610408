"""Applications with their owners and the number of their users, and lists of all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, case, func, not_, or_, select, union
from sqlalchemy.orm import Session

from domain.database.paging import Page, Slice, fetch_page
from domain.oauth.clients.applications import TRUSTED, owned_by, view_of
from domain.oauth.clients.types import ApplicationPage
from models import AccessToken, Application, Authorization, Consent, ServiceAccount, User
from models.folding import fold, searchable

#: More words than these narrow nothing down any more.
_MOST_WORDS = 10


def list_own(owner_id: int, *, session: Session, now: datetime) -> tuple[ApplicationPage, ...]:
    """Return the applications that a user owns, the newest first."""
    return _views(owned_by(owner_id), session=session, now=now)


def list_instance_wide(*, session: Session, now: datetime) -> tuple[ApplicationPage, ...]:
    """Return the applications of the instance, the newest first."""
    return _views(Application.is_instance_wide.is_(True), session=session, now=now)


def list_some(
    ids: Sequence[int], *, session: Session, now: datetime
) -> tuple[ApplicationPage, ...]:
    """Return the applications with these ids, the newest first."""
    return _views(Application.id.in_(ids), session=session, now=now)


def get_page(application_id: int, *, session: Session, now: datetime) -> ApplicationPage:
    """Return an application with its owner and the number of its users."""
    return _views(Application.id == application_id, session=session, now=now)[0]


def _views(
    condition: ColumnElement[bool], *, session: Session, now: datetime
) -> tuple[ApplicationPage, ...]:
    rows = session.execute(
        select(Application, User)
        .join(User, User.id == Application.owner_id)
        .where(condition)
        .order_by(Application.id.desc())
    ).all()
    ids = [application.id for application, _ in rows]
    people = _count_people(ids, session=session, now=now)
    tokens = _count_tokens(ids, session=session, now=now)
    return tuple(
        ApplicationPage(
            **dict(view_of(application)),
            owner_username=owner.username,
            owner_name=owner.name,
            people_count=people.get(application.id, 0),
            token_count=tokens.get(application.id, 0),
        )
        for application, owner in rows
    )


def _live(ids: Sequence[int], now: datetime) -> tuple[ColumnElement[bool], ...]:
    return (
        AccessToken.application_id.in_(ids),
        AccessToken.revoked_at.is_(None),
        or_(
            AccessToken.expires_at.is_(None),
            AccessToken.expires_at > now,
            AccessToken.refresh_digest.is_not(None),
        ),
    )


def _count_tokens(ids: Sequence[int], *, session: Session, now: datetime) -> dict[int, int]:
    """Count the pairs of which at least one token is valid, by application."""
    return _counted(
        select(AccessToken.application_id, func.count())
        .where(*_live(ids, now))
        .group_by(AccessToken.application_id),
        session=session,
    )


def _count_people(ids: Sequence[int], *, session: Session, now: datetime) -> dict[int, int]:
    """Count the users with a grant, a stored consent or a token, by application."""
    people = people_of(ids, now).subquery()
    return _counted(
        select(people.c.application_id, func.count()).group_by(people.c.application_id),
        session=session,
    )


def people_of(ids: Sequence[int], now: datetime) -> CompoundSelect[int, int]:
    """Return the query for the users of applications: the ids of application and user, once each.

    They have a grant, a stored consent or a token; service accounts do not count.
    """
    granted = select(Authorization.application_id, Authorization.user_id).where(
        Authorization.application_id.in_(ids), Authorization.revoked_at.is_(None)
    )
    remembered = select(Consent.application_id, Consent.user_id).where(
        Consent.application_id.in_(ids)
    )
    is_person = AccessToken.user_id.not_in(select(ServiceAccount.user_id))
    holding = select(AccessToken.application_id, AccessToken.user_id).where(
        *_live(ids, now), is_person
    )
    # Each person once, however often: a UNION has no doubles.
    return union(granted, remembered, holding)


def _counted(statement: Select[Any, int], *, session: Session) -> dict[int, int]:
    return dict(session.execute(statement).all())


@dataclass(frozen=True, kw_only=True)
class ApplicationFilter:
    """The filter of an application list."""

    #: Those of the instance itself, or else those of its users.
    is_instance_wide: bool = True
    #: Words, each of which the name, the ID or a name of the owner must contain.
    search: str = ""


@dataclass(frozen=True, kw_only=True)
class ApplicationCounts:
    """The number of applications of each kind."""

    instance_wide: int
    of_users: int
    trusted: int


def page_of_applications(
    wanted: ApplicationFilter, part: Slice, *, session: Session, now: datetime
) -> Page[ApplicationPage]:
    """Return a page of applications, newest first."""
    statement = (
        select(Application.id)
        .join(User, User.id == Application.owner_id)
        .where(_is_of(wanted), *_words(wanted.search))
    )
    found = fetch_page(statement, Application.id, part, session=session, view=lambda row: row)
    ids = [row.id for row in found.items]
    return found.with_items(list_some(ids, session=session, now=now))


def _is_of(wanted: ApplicationFilter) -> ColumnElement[bool]:
    mark = Application.is_instance_wide
    return mark.is_(True) if wanted.is_instance_wide else not_(mark)


def _words(search: str) -> list[ColumnElement[bool]]:
    columns = (
        searchable(Application.name, Application.name_key),
        Application.uid,
        searchable(User.username, User.username_key),
        searchable(User.name, User.name_key),
    )
    return [
        or_(*(column.contains(word, autoescape=True) for column in columns))
        for word in fold(search.replace("\x00", " ")).split()[:_MOST_WORDS]
    ]


def count_applications(*, session: Session) -> ApplicationCounts:
    """Count applications of each kind."""
    conditions = {
        "instance_wide": Application.is_instance_wide,
        "of_users": not_(Application.is_instance_wide),
        "trusted": TRUSTED,
    }
    counts = (
        func.count(case((condition, Application.id))).label(name)
        for name, condition in conditions.items()
    )
    return ApplicationCounts(**session.execute(select(*counts)).mappings().one())
