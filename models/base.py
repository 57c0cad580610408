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

# SQLite generates ids only for INTEGER PRIMARY KEY.
BigId = BigInteger().with_variant(Integer, "sqlite")


class UTCDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC timestamp on every database. SQLite itself returns naive timestamps."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None] | None:
        """Keep values from Postgres, whose connections use UTC, and parse strings from SQLite."""
        del coltype
        return None if dialect.name == "postgresql" else _parse_timestamp

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a timestamp to UTC.

        Raise ValueError for a naive timestamp.
        """
        del dialect
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime without a time zone cannot be stored")
        return value.astimezone(UTC)


def _parse_timestamp(value: str | None) -> datetime | None:
    """Parse a timestamp from SQLite, which has an offset if other software wrote it."""
    if value is None:
        return None
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


#: Timestamp that stands for never, so that SQL compares and sorts it like any other timestamp. It
#: is a day before the last possible day, so that it can be represented in every time zone.
NEVER = datetime(9999, 12, 30, tzinfo=UTC)


class UTCDateTimeOrNever(UTCDateTime):
    """A timestamp that may be never, which is None in Python and `NEVER` in the database."""

    cache_ok = True

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None]:
        """Convert stored values to UTC timestamps, and `NEVER` to None, on every database."""
        to_utc = super().result_processor(dialect, coltype) or _return_unchanged

        def convert(value: Any) -> datetime | None:
            found = to_utc(value)
            return None if found == NEVER else found

        return convert

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a timestamp to UTC.

        Raise ValueError for a naive timestamp.
        """
        return super().process_bind_param(NEVER if value is None else value, dialect)


def _return_unchanged(value: Any) -> Any:
    return value


class Seconds(TypeDecorator[timedelta]):
    """A duration, stored as a number of whole seconds."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: timedelta | None, dialect: Dialect) -> int | None:
        """Return the number of seconds."""
        del dialect
        return None if value is None else int(value.total_seconds())

    def process_result_value(self, value: int | None, dialect: Dialect) -> timedelta | None:
        """Return the duration."""
        del dialect
        return None if value is None else timedelta(seconds=value)


class Base(DeclarativeBase):
    """The base of every table. Constraint names are derived from table and columns."""

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


class WithId(Base):
    """The base of every table whose ids the database generates."""

    __abstract__ = True

    #: Id, which is the first column of each table.
    id: Mapped[int] = mapped_column(BigId, primary_key=True, sort_order=-1)


def build_cascade_key(table: str, **options: Any) -> MappedColumn[Any]:
    """Return a foreign key column; deleting the referenced row deletes this row."""
    return mapped_column(ForeignKey(f"{table}.id", ondelete="CASCADE"), **options)


def set_null_key(table: str, **options: Any) -> MappedColumn[Any]:
    """Return a foreign key column that becomes NULL when the referenced row is deleted."""
    return mapped_column(ForeignKey(f"{table}.id", ondelete="SET NULL"), **options)


class NamespaceOwned:
    """A mixin for tables whose rows belong to a project, or to a group for all its projects."""

    project_id: Mapped[int | None] = build_cascade_key("projects")
    group_id: Mapped[int | None] = build_cascade_key("groups")


def build_one_owner_constraint() -> CheckConstraint:
    """Return the constraint that a row belongs to either a project or a group."""
    return CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_holder")


def build_partial_index(
    name: str, *columns: Any, where: str | ColumnElement[bool], unique: bool = False
) -> Index:
    """Return an index over the rows that match a condition, for both databases."""
    condition = text(where) if isinstance(where, str) else where
    return Index(name, *columns, unique=unique, postgresql_where=condition, sqlite_where=condition)
