"""Lists of personal access tokens for pages and the API, without the tokens' secret values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, UnaryExpression, and_, func, not_, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.core.database.pagination import MAX_ID, KeysetPage, KeysetRange, PageResult, fetch_page
from domain.core.errors import NotFoundError
from domain.core.types.base import get_column_values
from domain.projects.views import Namespace
from models import AccessToken, Application, Bot, PersonalAccessToken, User
from models.case_folding import build_search_text, fold_text

#: Period before the expiry during which pages show a warning.
_EXPIRES_SOON_PERIOD = timedelta(days=14)
#: Maximum number of expiring tokens listed on the home page.
_MAX_EXPIRING_TOKENS = 5

#: Time columns by which a list can be filtered and sorted.
TIME_COLUMNS: dict[str, InstrumentedAttribute[Any]] = {
    "created": PersonalAccessToken.created_at,
    "expires": PersonalAccessToken.expires_at,
    "last_used": PersonalAccessToken.last_used_at,
}
_SORT_COLUMNS: dict[str, InstrumentedAttribute[Any]] = {
    **TIME_COLUMNS,
    "name": PersonalAccessToken.name,
}
#: Maximum number of tokens of each kind in a list of tokens that are older than `admin_mode`.
_MAX_FORMER_TOKENS = 20


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """A personal, project or group access token, without its secret value."""

    id: int
    user_id: int
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    #: Time of expiry, or None if the token never expires.
    expires_at: datetime | None
    last_used_at: datetime | None
    last_used_address: str | None
    revoked_at: datetime | None
    is_active: bool
    description: str = ""
    #: True if an application created the token; the token ends with the application's access.
    ends_with_application: bool = False
    #: True for a token older than the `admin_mode` scope, which has the scope's rights without the
    #: scope.
    keeps_admin_mode: bool = False

    def expires_soon(self, now: datetime) -> bool:
        """Return whether an active token expires in less than two weeks."""
        ends = self.expires_at
        return self.is_active and ends is not None and ends - now < _EXPIRES_SOON_PERIOD


@dataclass(frozen=True, kw_only=True)
class TokenFilter:
    """A filter for tokens. Fields that are None match all tokens."""

    #: ID of the owner of the tokens; None for the tokens of all users.
    owner_id: int | None
    user_id: int | None = None
    #: Project or group to which the bots that own the tokens belong.
    namespace: Namespace | None = None
    is_active: bool | None = None
    is_revoked: bool | None = None
    search: str = ""
    #: Inclusive limits for the columns in TIME_COLUMNS.
    at_least: Mapping[str, datetime] = field(default_factory=dict)
    at_most: Mapping[str, datetime] = field(default_factory=dict)


def build_token_view(token: PersonalAccessToken, now: datetime) -> TokenView:
    """Return the view of a token's row, including whether the token is active."""
    return TokenView(
        **{**get_column_values(token, TokenView), "scopes": tuple(token.scopes.split())},
        is_active=is_personal_token_usable(token, now),
        ends_with_application=token.authorization_id is not None,
    )


def is_personal_token_usable(token: PersonalAccessToken, now: datetime) -> bool:
    """Return whether a token is neither revoked nor expired."""
    is_over = token.expires_at is not None and token.expires_at <= now
    return token.revoked_at is None and not is_over


def build_live_personal_token_condition(now: datetime) -> ColumnElement[bool]:
    """Return an SQL condition that is true for tokens that are neither revoked nor expired."""
    return and_(PersonalAccessToken.revoked_at.is_(None), PersonalAccessToken.expires_at > now)


def _select_bots(namespace: Namespace | None) -> Select[Any]:
    group_id, project_id = (namespace.group_id, namespace.project_id) if namespace else (None, None)
    is_here = Bot.group_id == group_id if group_id is not None else Bot.project_id == project_id
    return select(Bot.user_id).where(is_here)


def _build_conditions(token_filter: TokenFilter, now: datetime) -> list[ColumnElement[bool]]:
    token = PersonalAccessToken
    live, dead = build_live_personal_token_condition(now), token.revoked_at.is_not(None)
    searched = fold_text(token_filter.search.replace("\x00", "\ufffd"))
    choices: tuple[tuple[bool, ColumnElement[bool]], ...] = (
        (token_filter.owner_id is not None, token.user_id == token_filter.owner_id),
        (token_filter.user_id is not None, token.user_id == token_filter.user_id),
        (
            token_filter.namespace is not None,
            token.user_id.in_(_select_bots(token_filter.namespace)),
        ),
        (token_filter.is_active is not None, live if token_filter.is_active else not_(live)),
        (token_filter.is_revoked is not None, dead if token_filter.is_revoked else not_(dead)),
        (
            bool(searched),
            build_search_text(token.name, token.name_key).contains(searched, autoescape=True),
        ),
    )
    return [
        *(condition for matters, condition in choices if matters),
        *(TIME_COLUMNS[name] >= moment for name, moment in token_filter.at_least.items()),
        *(TIME_COLUMNS[name] <= moment for name, moment in token_filter.at_most.items()),
    ]


def _build_order(sort: str | None) -> tuple[UnaryExpression[Any], ...]:
    newest = PersonalAccessToken.id.desc()
    if sort is None:
        return (newest,)
    name, _, way = sort.rpartition("_")
    column = _SORT_COLUMNS[name]
    # Unused tokens always come last; the databases differ in their default.
    return ((column.asc() if way == "asc" else column.desc()).nulls_last(), newest)


def find_tokens(
    token_filter: TokenFilter,
    *,
    session: Session,
    now: datetime,
    sort: str | None = None,
    offset: int = 0,
    limit: int | None = None,
) -> PageResult[TokenView]:
    """Return tokens in an order such as `name_asc`, by default newest first."""
    statement = select(PersonalAccessToken).where(*_build_conditions(token_filter, now))
    rows = session.scalars(statement.order_by(*_build_order(sort)).offset(offset).limit(limit))
    items = tuple(build_token_view(token, now) for token in rows)
    return PageResult(items=items, total=count_tokens(token_filter, session=session, now=now))


def list_expiring_tokens(
    owner_id: int, duration: timedelta, *, session: Session, now: datetime
) -> tuple[TokenView, ...]:
    """Return a user's active tokens that expire within `duration`, in order of expiry.

    The number of tokens is limited.
    """
    wanted = TokenFilter(owner_id=owner_id, is_active=True, at_most={"expires": now + duration})
    found = find_tokens(
        wanted, session=session, now=now, sort="expires_asc", limit=_MAX_EXPIRING_TOKENS
    )
    return found.items


def count_tokens(token_filter: TokenFilter, *, session: Session, now: datetime) -> int:
    """Return the number of tokens that match a filter."""
    counted = select(func.count(PersonalAccessToken.id)).where(
        *_build_conditions(token_filter, now)
    )
    return session.scalar(counted) or 0


def fetch_token_page(
    token_filter: TokenFilter, keyset_range: KeysetRange, *, session: Session, now: datetime
) -> KeysetPage[TokenView]:
    """Return a page of tokens, newest first."""
    statement = select(PersonalAccessToken).where(*_build_conditions(token_filter, now))
    return fetch_page(
        statement,
        PersonalAccessToken.id,
        keyset_range,
        session=session,
        view=lambda row: build_token_view(row[0], now),
    )


def get_token(token_id: int, *, owner_id: int | None, session: Session, now: datetime) -> TokenView:
    """Return a token of this owner, or of any user if `owner_id` is None.

    Raise NotFoundError if there is no such token.
    """
    return build_token_view(get_token_row(token_id, owner_id=owner_id, session=session), now)


def get_token_row(token_id: int, *, owner_id: int | None, session: Session) -> PersonalAccessToken:
    """Return the row of a token of this owner, or of any user if `owner_id` is None.

    Raise NotFoundError if there is no such token.
    """
    token = session.get(PersonalAccessToken, token_id) if token_id <= MAX_ID else None
    if token is None or owner_id not in {None, token.user_id}:
        raise NotFoundError("Personal access token not found.")
    return token


@dataclass(frozen=True, kw_only=True)
class LegacyAdminToken:
    """An administrator's token that was created before the `admin_mode` scope existed.

    The tokens of an application are combined into one object.
    """

    user_id: int
    username: str
    #: Name of the token or application; None for password grants without an application.
    name: str | None
    is_personal: bool


def list_legacy_admin_tokens(*, session: Session, now: datetime) -> tuple[LegacyAdminToken, ...]:
    """Return administrators' tokens that were created before the `admin_mode` scope existed.

    The number of tokens is limited.
    """
    personal = session.execute(
        select(User.id, User.username, PersonalAccessToken.name)
        .select_from(PersonalAccessToken)
        .join(User, User.id == PersonalAccessToken.user_id)
        .where(
            PersonalAccessToken.keeps_admin_mode,
            User.is_admin,
            build_live_personal_token_condition(now),
        )
        .order_by(User.username, PersonalAccessToken.id)
        .limit(_MAX_FORMER_TOKENS)
    )
    is_usable = or_(
        AccessToken.expires_at.is_(None),
        AccessToken.expires_at > now,
        AccessToken.refresh_digest.is_not(None),
    )
    of_applications = session.execute(
        select(User.id, User.username, func.min(Application.name).label("name"))
        .select_from(AccessToken)
        .join(User, User.id == AccessToken.user_id)
        .outerjoin(Application, Application.id == AccessToken.application_id)
        .where(
            AccessToken.keeps_admin_mode,
            User.is_admin,
            AccessToken.revoked_at.is_(None),
            is_usable,
        )
        .group_by(User.id, User.username, AccessToken.application_id)
        .order_by(User.username)
        .limit(_MAX_FORMER_TOKENS)
    )
    return tuple(
        LegacyAdminToken(
            user_id=row.id, username=row.username, name=row.name, is_personal=is_personal
        )
        for rows, is_personal in ((personal, True), (of_applications, False))
        for row in rows
    )
