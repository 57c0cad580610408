"""Lists, searches and counts accounts for administrators and for other users."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    exists,
    false,
    func,
    not_,
    or_,
    select,
)
from sqlalchemy.orm import Session

from domain.accounts.administration import get_account
from domain.accounts.email_addresses import IS_UNCONFIRMED, find_unconfirmed_address
from domain.accounts.profiles import build_avatar_url, build_profile_path
from domain.accounts.types import Account, AccountDetails, AccountIdentity, ListedAccount, UserQuery
from domain.accounts.types import User as PublicUser
from domain.accounts.users import (
    ACTIVE,
    DEACTIVATED,
    ERASED,
    HUMAN,
    MACHINE_KINDS,
    PENDING,
)
from domain.core.database.pagination import (
    MAX_ID,
    KeysetPage,
    KeysetRange,
    PageRequest,
    fetch_list_page,
    fetch_page,
)
from domain.core.types.pagination import ListPage
from models import Identity, IdentityProvider, Member, Passkey, SignIn, TotpDevice, User
from models.case_folding import build_search_text, fold_text

#: Maximum number of search words; additional words are ignored.
_MAX_SEARCH_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class AccountFilter:
    """The filter of an account list: a group of accounts and search words."""

    #: Key of the group of accounts in ACCOUNT_GROUPS.
    group: str = "people"
    #: Search words; the username, name or email address must contain each word.
    search: str = ""


@dataclass(frozen=True, kw_only=True)
class AccountCounts:
    """Numbers of accounts by kind. `people` does not include bots."""

    people: int
    administrators: int
    #: Number of accounts that are pending approval.
    pending: int
    deactivated: int
    locked: int
    bots: int
    #: Number of active administrators without a second factor.
    unguarded_administrators: int
    #: Number of people whose email address is not confirmed.
    unconfirmed: int


def _has_second_factor() -> ColumnElement[bool]:
    has_app = (
        select(TotpDevice.id)
        .where(TotpDevice.user_id == User.id, TotpDevice.confirmed_at.is_not(None))
        .exists()
    )
    return or_(has_app, select(Passkey.id).where(Passkey.user_id == User.id).exists())


_IS_HUMAN = User.kind == HUMAN
_IS_ADMINISTRATOR = and_(_IS_HUMAN, User.is_admin)
#: Names of account states in GitLab's API. An account in any other state is blocked.
_STATE_NAMES = {ACTIVE: "active", PENDING: "blocked_pending_approval", DEACTIVATED: "deactivated"}
_IS_BLOCKED = User.state.not_in(_STATE_NAMES)
#: SQL condition for each group of accounts.
ACCOUNT_GROUPS: Mapping[str, ColumnElement[bool]] = {
    "people": _IS_HUMAN,
    "administrators": _IS_ADMINISTRATOR,
    "pending": User.state == PENDING,
    "deactivated": User.state == DEACTIVATED,
    "locked": and_(_IS_BLOCKED, User.kind != ERASED),
    "bots": User.kind.in_(MACHINE_KINDS),
}
_ACCOUNTS_QUERY = select(User, _has_second_factor().label("has_second_factor"))


def fetch_account_page(
    account_filter: AccountFilter, keyset_range: KeysetRange, *, session: Session, base_url: str
) -> KeysetPage[ListedAccount]:
    """Return a page of accounts, newest first."""
    statement = _ACCOUNTS_QUERY.where(
        ACCOUNT_GROUPS[account_filter.group], *_build_word_conditions(account_filter.search)
    )
    view = partial(_build_listed_account, base_url=base_url)
    return fetch_page(statement, User.id, keyset_range, session=session, view=view)


_PUBLIC_NAMES = (
    build_search_text(User.username, User.username_key),
    build_search_text(User.name, User.name_key),
)
_ALL_NAMES = (*_PUBLIC_NAMES, build_search_text(User.email, User.email_key))
_ORDER_COLUMNS = {
    "id": User.id,
    "username": _PUBLIC_NAMES[0],
    "name": _PUBLIC_NAMES[1],
    "created_at": User.created_at,
    # The time of the last change is not stored.
    "updated_at": User.created_at,
}


def _build_word_conditions(
    search: str, columns: Sequence[ColumnElement[str]] = _ALL_NAMES
) -> list[ColumnElement[bool]]:
    return [
        or_(*(column.contains(word, autoescape=True) for column in columns))
        for word in fold_text(search.replace("\x00", " ")).split()[:_MAX_SEARCH_WORDS]
    ]


def _build_public_fields(user: User, base_url: str) -> dict[str, Any]:
    return {
        "id": user.id,
        "username": user.username,
        "name": user.name,
        "state": _STATE_NAMES.get(user.state, "blocked"),
        "public_email": None,
        "avatar_url": build_avatar_url(user, base_url),
        "web_url": f"{base_url}{build_profile_path(user.username)}",
        "bot": user.kind in MACHINE_KINDS,
        "created_at": user.created_at,
    }


def _build_listed_account(row: Row[*tuple[Any, ...]], *, base_url: str) -> ListedAccount:
    return ListedAccount(**_build_account_fields(row, base_url))


def _build_account_fields(row: Row[*tuple[Any, ...]], base_url: str) -> dict[str, Any]:
    user: User = row[0]
    return {
        **_build_public_fields(user, base_url),
        "email": user.email,
        "confirmed_at": user.email_confirmed_at,
        "is_admin": user.is_admin,
        "last_sign_in_at": user.last_sign_in_at,
        "two_factor_enabled": row.has_second_factor,
        "time_zone": user.time_zone,
        "must_change_password": user.must_change_password,
    }


def list_accounts(
    query: UserQuery, page_request: PageRequest, *, session: Session, base_url: str
) -> ListPage[Account]:
    """Return a page of all accounts except erased accounts, for administrators."""
    statement = _ACCOUNTS_QUERY.where(
        User.kind != ERASED,
        *_build_conditions(query),
        *_build_word_conditions(query.search, _ALL_NAMES),
    )
    found = fetch_list_page(statement, _ORDER_COLUMNS, page_request, session=session)
    known = _find_identities([row[0].id for row in found.items], session=session)
    return ListPage.from_page_result(
        found,
        lambda row: Account(**_build_account_fields(row, base_url), identities=known[row[0].id]),
    )


def _find_identities(
    user_ids: Sequence[int], *, session: Session
) -> Mapping[int, list[AccountIdentity]]:
    """Return the identities of users by user ID, ordered by the slugs of their providers."""
    columns = select(Identity.user_id, IdentityProvider.slug, Identity.subject)
    rows = session.execute(
        columns.join(IdentityProvider)
        .where(Identity.user_id.in_(user_ids))
        .order_by(IdentityProvider.slug)
    )
    found = defaultdict[int, list[AccountIdentity]](list)
    for user_id, slug, subject in rows:
        found[user_id].append(AccountIdentity(provider=slug, extern_uid=subject))
    return found


def list_public_users(
    query: UserQuery, page_request: PageRequest, *, session: Session, base_url: str
) -> ListPage[PublicUser]:
    """Return a page of people with active accounts, for users who are not administrators."""
    statement = select(User).where(
        _IS_PUBLIC, *_build_conditions(query), *_build_word_conditions(query.search, _PUBLIC_NAMES)
    )
    if query.identity:
        statement = statement.where(false())
    found = fetch_list_page(statement, _ORDER_COLUMNS, page_request, session=session)
    return ListPage.from_page_result(
        found, lambda row: PublicUser(**_build_public_fields(row[0], base_url))
    )


def find_public_user(user_id: int, *, session: Session, base_url: str) -> PublicUser | None:
    """Return the public fields of a person with an active account, or None."""
    if user_id > MAX_ID:
        return None
    user = session.scalar(select(User).where(User.id == user_id, _IS_PUBLIC))
    return PublicUser(**_build_public_fields(user, base_url)) if user else None


def get_public_user(user_id: int, *, session: Session, base_url: str) -> PublicUser:
    """Return the public fields of any account.

    Raise NotFoundError if the account does not exist or was erased.
    """
    get_account(user_id, session=session)
    return PublicUser(**_build_public_fields(session.get_one(User, user_id), base_url))


#: SQL condition for public accounts. Bots are excluded, since their names can come from tokens of
#: private projects.
_IS_PUBLIC = and_(_IS_HUMAN, User.state == ACTIVE)


#: Functions that return an SQL condition for a value, by field or property of UserQuery.
_CONDITIONS: Mapping[str, Callable[[Any], ColumnElement[bool]]] = {
    "username": lambda wanted: User.username_key == fold_text(wanted),
    "is_active": lambda wanted: _negate_if_false(User.state == ACTIVE, wanted),
    "is_blocked": lambda wanted: _negate_if_false(_IS_BLOCKED, wanted),
    "is_human": lambda wanted: _negate_if_false(_IS_HUMAN, wanted),
    "has_projects": lambda wanted: _negate_if_false(
        exists().where(Member.user_id == User.id), wanted
    ),
    "created_after": lambda wanted: User.created_at >= wanted,
    "created_before": lambda wanted: User.created_at <= wanted,
    "is_admin": lambda wanted: _negate_if_false(_IS_ADMINISTRATOR, wanted),
    "identity": lambda wanted: User.id.in_(_select_users_with_identity(*wanted)),
    "has_second_factor": lambda wanted: _negate_if_false(_has_second_factor(), wanted),
}


def _build_conditions(query: UserQuery) -> list[ColumnElement[bool]]:
    return [
        condition(value)
        for name, condition in _CONDITIONS.items()
        if (value := getattr(query, name)) not in {None, ""}
    ]


def _select_users_with_identity(subject: str, slug: str) -> Select[int]:
    found = select(Identity.user_id).where(Identity.subject == subject)
    if slug:
        found = found.join(IdentityProvider).where(IdentityProvider.slug == slug)
    return found


def _negate_if_false(condition: ColumnElement[bool], flag_value: bool) -> ColumnElement[bool]:  # noqa: FBT001 - a value
    return condition if flag_value else not_(condition)


def get_account_details(
    user_id: int, *, session: Session, now: datetime, base_url: str
) -> AccountDetails:
    """Return an account with the details that its page shows.

    Raise NotFoundError if the account does not exist or was erased.
    """
    user = get_account(user_id, session=session)
    row = session.execute(_ACCOUNTS_QUERY.where(User.id == user.id)).one()
    sign_ins = select(func.count(SignIn.id)).where(
        SignIn.user_id == user.id, SignIn.expires_at > now
    )
    return AccountDetails(
        **_build_account_fields(row, base_url),
        identities=_find_identities([user.id], session=session)[user.id],
        password_changed_at=user.password_changed_at,
        open_sign_ins=session.scalar(sign_ins) or 0,
        waiting_address=find_unconfirmed_address(user_id, session=session),
    )


def count_accounts(*, session: Session) -> AccountCounts:
    """Return the number of accounts of each kind."""
    unguarded = and_(_IS_ADMINISTRATOR, User.state == ACTIVE, not_(_has_second_factor()))
    conditions = {
        **ACCOUNT_GROUPS,
        "unguarded_administrators": unguarded,
        "unconfirmed": IS_UNCONFIRMED,
    }
    # Each condition is counted in a separate subquery, which uses an index. A single pass would
    # read every account.
    counts = (
        select(func.count()).select_from(User).where(condition).scalar_subquery().label(name)
        for name, condition in conditions.items()
    )
    return AccountCounts(**session.execute(select(*counts)).mappings().one())
