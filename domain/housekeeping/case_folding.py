"""Repairs case-folded names that were written by an earlier version or by the database."""

from collections.abc import Callable

from sqlalchemy import ColumnElement, LargeBinary, cast, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute, Session

from models import Environment, User
from models.case_folding import fold_text

_BATCH_SIZE = 500
_ACCOUNT_NAME_COLUMNS = (
    (User.username, User.username_key),
    (User.email, User.email_key),
    (User.name, User.name_key),
)


def fold_environment_names(*, session: Session) -> None:
    """Fold the names of environments that were created without a folded name.

    The database creates such environments while it stores alerts.
    """
    new_ones = select(Environment).where(Environment.name_key.is_(None)).limit(_BATCH_SIZE)
    while found := session.scalars(new_ones).all():
        for environment in found:
            environment.name_key = fold_text(environment.name)
        session.flush()


def refold_account_names(*, session: Session, commit_batch: Callable[[], None]) -> int:
    """Correct the case folding of account names, and return the number of changed accounts.

    An email address that collides with the address of an older account is retried in each run,
    because the older account's address may change.
    """
    texts = [text for text, _ in _ACCOUNT_NAME_COLUMNS]
    keys = [key for _, key in _ACCOUNT_NAME_COLUMNS]
    may_be_wrong = or_(
        *(_may_have_wrong_folding(*names, session=session) for names in _ACCOUNT_NAME_COLUMNS)
    )
    changed, last = 0, 0
    while found := session.execute(
        select(User.id, *texts, *keys)
        .where(User.id > last, may_be_wrong)
        .order_by(User.id)
        .limit(_BATCH_SIZE)
    ).all():
        for number, *values in found:
            right = [fold_text(value) for value in values[: len(texts)]]
            if right != values[len(texts) :]:
                changed += _refold_account(number, right, session=session)
            last = number
        commit_batch()
    return changed


def _may_have_wrong_folding(
    text: InstrumentedAttribute[str],
    key: InstrumentedAttribute[str | None],
    *,
    session: Session,
) -> ColumnElement[bool]:
    """Return an SQL condition that is true for names with non-ASCII characters.

    For ASCII text, every database folds names in the same way as Python.
    """
    is_postgres = session.get_bind().dialect.name == "postgresql"
    octets = func.octet_length(text) if is_postgres else func.length(cast(text, LargeBinary))
    return or_(key.is_distinct_from(func.lower(text)), octets != func.length(text))


def _refold_account(number: int, keys: list[str], *, session: Session) -> bool:
    user, changed = session.get_one(User, number), False
    for (_, column), key in zip(_ACCOUNT_NAME_COLUMNS, keys, strict=True):
        if getattr(user, column.key) == key:
            continue
        try:
            with session.begin_nested():
                setattr(user, column.key, key)
        except IntegrityError:
            continue  # An older account has this name.
        changed = True
    return changed
