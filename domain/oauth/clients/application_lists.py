"""Lists of applications, with their owners and numbers of users."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    case,
    func,
    literal,
    not_,
    or_,
    select,
    union,
    union_all,
)
from sqlalchemy.orm import Session

from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_page
from domain.oauth.clients.applications import (
    IS_TRUSTED,
    build_application_view,
    build_owner_condition,
)
from domain.oauth.clients.types import ApplicationOverview
from domain.projects.access import COUNT_LIMIT
from models import AccessToken, Application, Authorization, Consent, ServiceAccount, User
from models.case_folding import build_search_text, fold_text

#: Maximum number of search words; more words hardly narrow the result.
_MAX_SEARCH_WORDS = 10


def list_own_applications(
    owner_id: int, *, session: Session, now: datetime
) -> tuple[ApplicationOverview, ...]:
    """Return the applications that a user owns, newest first."""
    return _build_pages(build_owner_condition(owner_id), session=session, now=now)


def list_instance_wide_applications(
    *, session: Session, now: datetime
) -> tuple[ApplicationOverview, ...]:
    """Return the instance-wide applications, newest first."""
    return _build_pages(Application.is_instance_wide.is_(True), session=session, now=now)


def list_applications_by_id(
    ids: Sequence[int], *, session: Session, now: datetime
) -> tuple[ApplicationOverview, ...]:
    """Return the applications with these IDs, newest first."""
    return _build_pages(Application.id.in_(ids), session=session, now=now)


def get_application_overview(
    application_id: int, *, session: Session, now: datetime
) -> ApplicationOverview:
    """Return an application with its owner and the number of its users."""
    return _build_pages(Application.id == application_id, session=session, now=now)[0]


def _build_pages(
    condition: ColumnElement[bool], *, session: Session, now: datetime
) -> tuple[ApplicationOverview, ...]:
    rows = session.execute(
        select(Application, User)
        .join(User, User.id == Application.owner_id)
        .where(condition)
        .order_by(Application.id.desc())
    ).all()
    ids = [application.id for application, _ in rows]
    counts = _count_users_and_tokens(ids, session=session, now=now)
    return tuple(
        ApplicationOverview(
            **dict(build_application_view(application)),
            owner_username=owner.username,
            owner_name=owner.name,
            people_count=counts[application.id][0],
            token_count=counts[application.id][1],
        )
        for application, owner in rows
    )


def list_live_token_conditions(now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return SQL conditions that select token pairs that are valid or can be refreshed."""
    return (
        AccessToken.revoked_at.is_(None),
        or_(
            AccessToken.expires_at.is_(None),
            AccessToken.expires_at > now,
            AccessToken.refresh_digest.is_not(None),
        ),
    )


def _count_users_and_tokens(
    ids: Sequence[int], *, session: Session, now: datetime
) -> Mapping[int, tuple[int, int]]:
    """Return the number of users and active token pairs of each application.

    A number above COUNT_LIMIT is a lower bound.
    """
    if not ids:
        return {}
    rows = session.execute(union_all(*(_select_counts(each, now) for each in ids)))
    return {application_id: (users, pairs) for application_id, users, pairs in rows}


def _select_counts(application_id: int, now: datetime) -> Select[int, int, int]:
    # Users are selected in index order, so that the count can stop at the limit.
    people = _select_user_ids(
        application_id,
        now,
        lambda each: each.order_by(*each.selected_columns).limit(COUNT_LIMIT + 1),
    )
    tokens = select(AccessToken.id).where(
        AccessToken.application_id == application_id, *list_live_token_conditions(now)
    )
    return select(literal(application_id), _count_up_to_limit(people), _count_up_to_limit(tokens))


def _count_up_to_limit(counted: Select[int]) -> ScalarSelect[int]:
    first = counted.limit(COUNT_LIMIT + 1).subquery()
    return select(func.count()).select_from(first).scalar_subquery()


def count_application_users(application_id: int, *, session: Session, now: datetime) -> int:
    """Return the number of users of an application, without an upper limit."""
    people = _select_user_ids(application_id, now, lambda each: each).subquery()
    return session.scalar(select(func.count()).select_from(people)) or 0


def select_application_user_ids(
    application_id: int, now: datetime, *, keyset_range: KeysetRange, offset: int = 0
) -> Select[int]:
    """Return the query for a page of an application's users, with one extra row.

    A user who has a grant, a stored consent or a token counts as a user of the application. Service
    accounts do not count.
    """

    def limit_to_page(found: Select[int]) -> Select[int]:
        (user_id,) = found.selected_columns
        if keyset_range.after is not None:
            found = found.where(user_id > keyset_range.after).order_by(user_id)
        else:
            found = found.order_by(user_id.desc())
        if keyset_range.before is not None:
            found = found.where(user_id < keyset_range.before)
        return found.limit(offset + keyset_range.size + 1)

    return _select_user_ids(application_id, now, limit_to_page)


def _select_user_ids(
    application_id: int, now: datetime, cut: Callable[[Select[int]], Select[int]]
) -> Select[int]:
    """Return a query for the distinct IDs of an application's users.

    `cut` limits the IDs from each table.
    """
    granted = select(Authorization.user_id).where(
        Authorization.application_id == application_id, Authorization.revoked_at.is_(None)
    )
    remembered = select(Consent.user_id).where(Consent.application_id == application_id)
    of_service = select(ServiceAccount.user_id).where(
        ServiceAccount.application_id == application_id
    )
    # Token pairs with a grant are excluded. They end with the grant, which is already selected.
    holding = select(AccessToken.user_id).where(
        AccessToken.application_id == application_id,
        *list_live_token_conditions(now),
        AccessToken.authorization_id.is_(None),
        AccessToken.user_id.not_in(of_service),
    )
    # UNION removes duplicates, so each user occurs once.
    found = union(
        *(select(cut(each.distinct()).subquery()) for each in (granted, remembered, holding))
    )
    return select(found.subquery())


@dataclass(frozen=True, kw_only=True)
class ApplicationFilter:
    """A filter for instance-wide or user-owned applications that match search words."""

    #: True for instance-wide applications, False for the applications of users.
    is_instance_wide: bool = True
    #: Search words. Each word must occur in the name or client_id of the application, or in the
    #: username or name of its owner.
    search: str = ""


@dataclass(frozen=True, kw_only=True)
class ApplicationCounts:
    """The numbers of instance-wide, user-owned and trusted applications."""

    instance_wide: int
    of_users: int
    trusted: int


def fetch_application_page(
    application_filter: ApplicationFilter,
    keyset_range: KeysetRange,
    *,
    session: Session,
    now: datetime,
) -> KeysetPage[ApplicationOverview]:
    """Return a page of applications, newest first."""
    statement = (
        select(Application.id)
        .join(User, User.id == Application.owner_id)
        .where(
            _matches_kind(application_filter), *_build_word_conditions(application_filter.search)
        )
    )
    found = fetch_page(
        statement, Application.id, keyset_range, session=session, view=lambda row: row
    )
    ids = [row.id for row in found.items]
    return found.with_items(list_applications_by_id(ids, session=session, now=now))


def _matches_kind(application_filter: ApplicationFilter) -> ColumnElement[bool]:
    mark = Application.is_instance_wide
    return mark.is_(True) if application_filter.is_instance_wide else not_(mark)


def _build_word_conditions(search: str) -> list[ColumnElement[bool]]:
    columns = (
        build_search_text(Application.name, Application.name_key),
        Application.uid,
        build_search_text(User.username, User.username_key),
        build_search_text(User.name, User.name_key),
    )
    return [
        or_(*(column.contains(word, autoescape=True) for column in columns))
        for word in fold_text(search.replace("\x00", " ")).split()[:_MAX_SEARCH_WORDS]
    ]


def count_applications(*, session: Session) -> ApplicationCounts:
    """Return the number of applications of each kind."""
    conditions = {
        "instance_wide": Application.is_instance_wide,
        "of_users": not_(Application.is_instance_wide),
        "trusted": IS_TRUSTED,
    }
    counts = (
        func.count(case((condition, Application.id))).label(name)
        for name, condition in conditions.items()
    )
    return ApplicationCounts(**session.execute(select(*counts)).mappings().one())
