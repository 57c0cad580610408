"""The declarative base, constraint names, and UTC timestamps."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ColumnElement,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, mapped_column
from sqlalchemy.types import TypeDecorator

# SQLite only generates ids for INTEGER PRIMARY KEY.
BigId = BigInteger().with_variant(Integer, "sqlite")


class UTCDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC timestamp on every database; SQLite itself returns naive ones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None] | None:
        """Keep values of Postgres, whose connections are in UTC; SQLite has texts."""
        del coltype
        return None if dialect.name == "postgresql" else _from_text

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; raise ValueError for a naive value."""
        del dialect
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a date-time without a time zone reached the database")
        return value.astimezone(UTC)


def _from_text(value: str | None) -> datetime | None:
    """Read what SQLite stored; what others wrote into it may have an offset."""
    if value is None:
        return None
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


#: Stored for a moment that never comes: statements compare and sort it as any other one.
#: A day before the last one, so that every time zone can write it.
NEVER = datetime(9999, 12, 30, tzinfo=UTC)


class UTCDateTimeOrNever(UTCDateTime):
    """A timestamp that may never come: None in Python, `NEVER` in the database."""

    cache_ok = True

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None]:
        """Convert the values of every database."""
        to_utc = super().result_processor(dialect, coltype) or _unchanged

        def convert(value: Any) -> datetime | None:
            found = to_utc(value)
            return None if found == NEVER else found

        return convert

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; raise ValueError for a naive value."""
        return super().process_bind_param(NEVER if value is None else value, dialect)


def _unchanged(value: Any) -> Any:
    return value


class Seconds(TypeDecorator[timedelta]):
    """A length of time, stored as a number of whole seconds."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: timedelta | None, dialect: Dialect) -> int | None:
        """Return the number."""
        del dialect
        return None if value is None else int(value.total_seconds())

    def process_result_value(self, value: int | None, dialect: Dialect) -> timedelta | None:
        """Return the length."""
        del dialect
        return None if value is None else timedelta(seconds=value)


class Base(DeclarativeBase):
    """The base of every table; constraint names follow from table and columns."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UTCDateTime}  # noqa: RUF012 - SQLAlchemy's declared name


class Numbered(Base):
    """The base of every table whose rows have an id that the database gives."""

    __abstract__ = True

    #: The first column of each.
    id: Mapped[int] = mapped_column(BigId, primary_key=True, sort_order=-1)


def belongs_to(table: str, **options: Any) -> MappedColumn[Any]:
    """Return a column for the id of a row of another table, with which this one is deleted."""
    return mapped_column(ForeignKey(f"{table}.id", ondelete="CASCADE"), **options)


def refers_to(table: str, **options: Any) -> MappedColumn[Any]:
    """Return a column for the id of a row of another table, NULL when that was deleted."""
    return mapped_column(ForeignKey(f"{table}.id", ondelete="SET NULL"), **options)


class OfNamespace:
    """A mixin of tables whose rows belong to a project, or to a group for all its projects."""

    project_id: Mapped[int | None] = belongs_to("projects")
    group_id: Mapped[int | None] = belongs_to("groups")


def of_one_holder() -> CheckConstraint:
    """Return the constraint that a row of `OfNamespace` belongs to one of both."""
    return CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_holder")


def partial_index(
    name: str, *columns: Any, where: str | ColumnElement[bool], unique: bool = False
) -> Index:
    """Return an index of the rows that meet a condition, on both databases."""
    condition = text(where) if isinstance(where, str) else where
    return Index(name, *columns, unique=unique, postgresql_where=condition, sqlite_where=condition)
