"""How a table with personal data is described."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import ColumnElement, SQLColumnExpression

from domain.accounts.users import UserView
from models import Base


class ErasureRule(StrEnum):
    """The effect of an erasure on rows; the value describes it."""

    DELETED = "deleted"
    PSEUDONYM = "kept under a pseudonym"
    HANDED_ON = "transferred to another user, or deleted"


@dataclass(frozen=True, kw_only=True)
class PersonalDataTable:
    """A table with personal data."""

    #: Its name in an export.
    name: str
    #: Its content, in words.
    about: str
    model: type[Base]
    #: The condition for the rows of a person.
    of: Callable[[UserView], ColumnElement[bool]]
    #: The exported columns; keyed hashes and keys are left out.
    exported: tuple[str, ...]
    #: By column: what is exported of a text that may contain secrets.
    rewritten: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    on_erasure: ErasureRule


def by(column: SQLColumnExpression[int | None]) -> Callable[[UserView], ColumnElement[bool]]:
    """Return the condition for rows in which a column has the id of a person."""

    def is_theirs(user: UserView) -> ColumnElement[bool]:
        condition: ColumnElement[bool] = column == user.id
        return condition

    return is_theirs
