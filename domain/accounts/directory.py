"""Lists, search and counts of accounts: for administrators, and of people for each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, exists, func, not_, or_, select
from sqlalchemy.orm import Session

from domain.accounts.administration import get_account
from domain.accounts.email_addresses import IS_UNCONFIRMED, WaitingAddress, find_waiting
from domain.accounts.users import ACTIVE, BOT, ERASED, HUMAN
from domain.clock import written
from domain.database.paging import LARGEST_ID, Listed, ListPart, Page, Slice, fetch_page, fetch_part
from models import Member, Passkey, SignIn, TotpDevice, User
from models.folding import fold, searchable

#: Further words of a search are ignored.
_MOST_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account in a list."""

    id: int
    username: str
    name: str
    email: str
    is_admin: bool
    state: str
    is_bot: bool
    must_change_password: bool
    created_at: datetime
    last_sign_in_at: datetime | None
    has_second_factor: bool
    time_zone: str
    #: None while it has not been shown that the e-mail address is theirs.
    email_confirmed_at: datetime | None

    @property
    def is_active(self) -> bool:
        """Return whether the account may be used."""
        return self.state == ACTIVE

    def as_json(self) -> dict[str, object]:
        """Return the account as the command line prints it."""
        seen, confirmed = self.last_sign_in_at, self.email_confirmed_at
        return {
            "id": self.id,
            "username": self.username,
            "email": self.email,
            "confirmed_at": written(confirmed) if confirmed else None,
            "name": self.name,
            "kind": BOT if self.is_bot else HUMAN,
            "state": self.state,
            "is_admin": self.is_admin,
            "two_factor_enabled": self.has_second_factor,
            "time_zone": self.time_zone,
            "last_sign_in_at": written(seen) if seen else None,
        }


@dataclass(frozen=True, kw_only=True)
class AccountPage(Account):
    """An account on its own page."""

    password_changed_at: datetime | None
    #: The number of live sign-ins.
    open_sign_ins: int
    #: The new e-mail address, or that of the account, while it waits to be confirmed.
    waiting_address: WaitingAddress | None


@dataclass(frozen=True, kw_only=True)
class AccountFilter:
    """The filter of an account list."""

    #: One of GROUPS.
    group: str = "people"
    #: Words; each has to be in the user name, the name or the e-mail address.
    search: str = ""


@dataclass(frozen=True, kw_only=True)
class UserFilter:
    """Which users a list of the API has; what is None does not matter."""

    username: str | None = None
    #: Words; as in `AccountFilter`, but only administrators search e-mail addresses.
    search: str = ""
    is_active: bool | None = None
    is_human: bool | None = None
    #: Whether they are members of a project or a group.
    has_projects: bool | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    #: For administrators.
    is_admin: bool | None = None
    has_second_factor: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PublicUser:
    """What all users may know of another."""

    id: int
    username: str
    name: str
    is_bot: bool
    is_active: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class AccountCounts:
    """The number of accounts of each kind; `people` does not include bots."""

    people: int
    administrators: int
    locked: int
    bots: int
    #: Active administrators without a second factor.
    unguarded_administrators: int
    #: People whose e-mail address was never confirmed.
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
#: The condition of each group of accounts.
GROUPS: Mapping[str, ColumnElement[bool]] = {
    "people": _IS_HUMAN,
    "administrators": _IS_ADMINISTRATOR,
    "locked": and_(User.state != ACTIVE, User.kind != ERASED),
    "bots": User.kind == BOT,
}
_ACCOUNTS = select(User, _has_second_factor().label("has_second_factor"))


def page_of_accounts(wanted: AccountFilter, part: Slice, *, session: Session) -> Page[Account]:
    """Return a page of accounts, the newest first."""
    statement = _ACCOUNTS.where(GROUPS[wanted.group], *_words(wanted.search))
    return fetch_page(statement, User.id, part, session=session, view=_account)


_PUBLIC_NAMES = (
    searchable(User.username, User.username_key),
    searchable(User.name, User.name_key),
)
_ALL_NAMES = (*_PUBLIC_NAMES, searchable(User.email, User.email_key))
_ORDERS = {
    "id": User.id,
    "username": _PUBLIC_NAMES[0],
    "name": _PUBLIC_NAMES[1],
    "created_at": User.created_at,
    # When an account was changed is not kept.
    "updated_at": User.created_at,
}


def _words(
    search: str, columns: Sequence[ColumnElement[str]] = _ALL_NAMES
) -> list[ColumnElement[bool]]:
    return [
        or_(*(column.contains(word, autoescape=True) for column in columns))
        for word in fold(search.replace("\x00", " ")).split()[:_MOST_WORDS]
    ]


def _account(row: Row[*tuple[Any, ...]]) -> Account:
    user: User = row[0]
    return Account(
        id=user.id,
        username=user.username,
        name=user.name,
        email=user.email,
        is_admin=user.is_admin,
        state=user.state,
        is_bot=user.kind == BOT,
        must_change_password=user.must_change_password,
        created_at=user.created_at,
        last_sign_in_at=user.last_sign_in_at,
        has_second_factor=row.has_second_factor,
        time_zone=user.time_zone,
        email_confirmed_at=user.email_confirmed_at,
    )


def list_accounts(wanted: UserFilter, part: ListPart, *, session: Session) -> Listed[Account]:
    """Return a part of all accounts but erased ones, for administrators."""
    statement = _ACCOUNTS.where(
        User.kind != ERASED, *_conditions(wanted), *_words(wanted.search, _ALL_NAMES)
    )
    found = fetch_part(statement, _ORDERS, part, session=session)
    return Listed(
        items=tuple(_account(row) for row in found.items),
        total=found.total,
        next_cursor=found.next_cursor,
    )


def list_public_users(
    wanted: UserFilter, part: ListPart, *, session: Session
) -> Listed[PublicUser]:
    """Return a part of the people with an active account, for all users."""
    statement = select(User).where(
        _IS_PUBLIC, *_conditions(wanted), *_words(wanted.search, _PUBLIC_NAMES)
    )
    found = fetch_part(statement, _ORDERS, part, session=session)
    return Listed(
        items=tuple(_public(row[0]) for row in found.items),
        total=found.total,
        next_cursor=found.next_cursor,
    )


def find_public_user(user_id: int, *, session: Session) -> PublicUser | None:
    """Return a person with an active account, or None."""
    if user_id > LARGEST_ID:
        return None
    user = session.scalar(select(User).where(User.id == user_id, _IS_PUBLIC))
    return _public(user) if user else None


def get_public_user(user_id: int, *, session: Session) -> PublicUser:
    """Return what is public of any account, or raise NotFoundError."""
    get_account(user_id, session=session)
    return _public(session.get_one(User, user_id))


#: Bots are not for everybody: their names are those of tokens of private projects as well.
_IS_PUBLIC = and_(_IS_HUMAN, User.state == ACTIVE)


#: By the name of the field of UserFilter.
_CONDITIONS: Mapping[str, Callable[[Any], ColumnElement[bool]]] = {
    "username": lambda wanted: User.username_key == fold(wanted),
    "is_active": lambda wanted: _is(User.state == ACTIVE, wanted),
    "is_human": lambda wanted: _is(_IS_HUMAN, wanted),
    "has_projects": lambda wanted: _is(exists().where(Member.user_id == User.id), wanted),
    "created_after": lambda wanted: User.created_at >= wanted,
    "created_before": lambda wanted: User.created_at <= wanted,
    "is_admin": lambda wanted: _is(_IS_ADMINISTRATOR, wanted),
    "has_second_factor": lambda wanted: _is(_has_second_factor(), wanted),
}


def _conditions(wanted: UserFilter) -> list[ColumnElement[bool]]:
    return [
        condition(value)
        for name, condition in _CONDITIONS.items()
        if (value := getattr(wanted, name)) is not None
    ]


def _is(condition: ColumnElement[bool], wanted: bool) -> ColumnElement[bool]:  # noqa: FBT001 - a value
    return condition if wanted else not_(condition)


def _public(user: User) -> PublicUser:
    return PublicUser(
        id=user.id,
        username=user.username,
        name=user.name,
        is_bot=user.kind == BOT,
        is_active=user.state == ACTIVE,
        created_at=user.created_at,
    )


def look_up_account(user_id: int, *, session: Session, now: datetime) -> AccountPage:
    """Return an account with the details of its page, or raise NotFoundError."""
    user = get_account(user_id, session=session)
    row = session.execute(_ACCOUNTS.where(User.id == user.id)).one()
    sign_ins = select(func.count(SignIn.id)).where(
        SignIn.user_id == user.id, SignIn.expires_at > now
    )
    return AccountPage(
        **vars(_account(row)),
        password_changed_at=user.password_changed_at,
        open_sign_ins=session.scalar(sign_ins) or 0,
        waiting_address=find_waiting(user_id, session=session),
    )


def count_accounts(*, session: Session) -> AccountCounts:
    """Return the number of accounts of each kind."""
    unguarded = and_(_IS_ADMINISTRATOR, User.state == ACTIVE, not_(_has_second_factor()))
    conditions = {
        **GROUPS,
        "unguarded_administrators": unguarded,
        "unconfirmed": IS_UNCONFIRMED,
    }
    counts = (
        func.count(case((condition, User.id))).label(name) for name, condition in conditions.items()
    )
    return AccountCounts(**session.execute(select(*counts)).mappings().one())
