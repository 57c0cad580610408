"""Lists, search and counts of accounts for administrators."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, func, not_, or_, select
from sqlalchemy.orm import Session

from domain.accounts.administration import get_account
from domain.accounts.users import ACTIVE, BOT, ERASED, HUMAN
from domain.clock import written
from domain.database.paging import Page, Slice, fetch_page
from models import Passkey, SignIn, TotpDevice, User
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

    @property
    def is_active(self) -> bool:
        """Whether the account may be used."""
        return self.state == ACTIVE

    def as_json(self) -> dict[str, object]:
        """Return the account as the command line prints it."""
        seen = self.last_sign_in_at
        return {
            "id": self.id,
            "username": self.username,
            "email": self.email,
            "name": self.name,
            "kind": BOT if self.is_bot else HUMAN,
            "state": self.state,
            "is_admin": self.is_admin,
            "two_factor_enabled": self.has_second_factor,
            "last_sign_in_at": written(seen) if seen else None,
        }


@dataclass(frozen=True, kw_only=True)
class AccountPage(Account):
    """An account on its own page."""

    password_changed_at: datetime | None
    #: The number of live sign-ins.
    open_sign_ins: int


@dataclass(frozen=True, kw_only=True)
class AccountFilter:
    """The filter of an account list."""

    #: One of GROUPS.
    group: str = "people"
    #: Words; each has to be in the user name, the name or the e-mail address.
    search: str = ""


@dataclass(frozen=True, kw_only=True)
class AccountCounts:
    """The number of accounts of each kind; `people` does not include bots."""

    people: int
    administrators: int
    locked: int
    bots: int
    #: Active administrators without a second factor.
    unguarded_administrators: int


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


def _words(search: str) -> list[ColumnElement[bool]]:
    columns = (
        searchable(User.username, User.username_key),
        searchable(User.name, User.name_key),
        searchable(User.email, User.email_key),
    )
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
    )


def count_accounts(*, session: Session) -> AccountCounts:
    """Return the number of accounts of each kind."""
    unguarded = and_(_IS_ADMINISTRATOR, User.state == ACTIVE, not_(_has_second_factor()))
    conditions = {**GROUPS, "unguarded_administrators": unguarded}
    counts = (
        func.count(case((condition, User.id))).label(name) for name, condition in conditions.items()
    )
    return AccountCounts(**session.execute(select(*counts)).mappings().one())
