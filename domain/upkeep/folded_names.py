"""Makes folded names right that another hand than ours wrote: a former version, or the database."""

from collections.abc import Callable

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import Environment, User
from models.folding import fold

_SLICE = 500
_ACCOUNT_NAMES = (
    (User.username, User.username_key),
    (User.email, User.email_key),
    (User.name, User.name_key),
)


def fold_environments(*, session: Session) -> None:
    """Fold the names of environments that the database made as their alerts came in."""
    new_ones = select(Environment).where(Environment.name_key.is_(None)).limit(_SLICE)
    while found := session.scalars(new_ones).all():
        for environment in found:
            environment.name_key = fold(environment.name)
        session.flush()


def fold_accounts(*, session: Session, between: Callable[[], None]) -> int:
    """Fold the names of accounts that are not folded right, and return how many there were.

    One whose address leads to an older account is looked at each time: the older one may have
    another address by now.
    """
    texts = [text for text, _ in _ACCOUNT_NAMES]
    keys = [key for _, key in _ACCOUNT_NAMES]
    changed, last = 0, 0
    while found := session.execute(
        select(User.id, *texts, *keys).where(User.id > last).order_by(User.id).limit(_SLICE)
    ).all():
        for number, *values in found:
            right = [fold(value) for value in values[: len(texts)]]
            if right != values[len(texts) :]:
                changed += _fold_account(number, right, session=session)
            last = number
        between()
    return changed


def _fold_account(number: int, keys: list[str], *, session: Session) -> bool:
    user, changed = session.get_one(User, number), False
    for (_, column), key in zip(_ACCOUNT_NAMES, keys, strict=True):
        if getattr(user, column.key) == key:
            continue
        try:
            with session.begin_nested():
                setattr(user, column.key, key)
        except IntegrityError:
            continue  # an older account has it
        changed = True
    return changed
