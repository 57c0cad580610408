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
    Text,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, mapped_column
from sqlalchemy.types import TypeDecorator

# SQLite generates IDs only for INTEGER PRIMARY KEY.
BigId = BigInteger().with_variant(Integer, "sqlite")


class UTCDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC timestamp on every database. SQLite itself returns naive timestamps."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None] | None:
        """Return a function that parses strings from SQLite, or None for Postgres.

        Values from Postgres need no conversion, because its connections use UTC.
        """
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
    """Parse a timestamp from SQLite.

    The timestamp has an offset if other software wrote it.
    """
    if value is None:
        return None
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


#: Timestamp that stands for never, so that SQL compares and sorts it like any other timestamp. It
#: is a day before the last possible day, so that it can be represented in every time zone.
NEVER = datetime(9999, 12, 30, tzinfo=UTC)


class UTCDateTimeOrNever(UTCDateTime):
    """A timestamp that can also be "never", which is None in Python and `NEVER` in the database."""

    cache_ok = True

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None]:
        """Return a function that converts stored values to UTC timestamps, and `NEVER` to None."""
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


class DurationInSeconds(TypeDecorator[timedelta]):
    """A duration, stored as a number of whole seconds."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: timedelta | None, dialect: Dialect) -> int | None:
        """Convert a duration to a number of whole seconds."""
        del dialect
        return None if value is None else int(value.total_seconds())

    def process_result_value(self, value: int | None, dialect: Dialect) -> timedelta | None:
        """Convert a number of seconds to a duration."""
        del dialect
        return None if value is None else timedelta(seconds=value)


class Base(DeclarativeBase):
    """The base of every table. Constraint names are derived from the table and its columns."""

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


class BaseWithId(Base):
    """The base of every table whose IDs the database generates."""

    __abstract__ = True

    #: Id, which is the first column of each table.
    id: Mapped[int] = mapped_column(BigId, primary_key=True, sort_order=-1)


class ClaimedRow(BaseWithId):
    """The columns of a destination that one worker at a time serves, and its delivery status."""

    __abstract__ = True

    #: Number of the last claim, and the time until which no other worker may send messages.
    claim: Mapped[int] = mapped_column(BigId, default=0)
    claimed_until: Mapped[datetime | None]
    #: Number of failed attempts since the last success, and the times of the first and the last
    #: failed attempt.
    tries: Mapped[int] = mapped_column(Integer, default=0)
    failing_since: Mapped[datetime | None]
    last_failed_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)


def build_cascading_foreign_key(table: str, **options: Any) -> MappedColumn[Any]:
    """Return a foreign key column. Deleting the referenced row also deletes the referring row."""
    return mapped_column(ForeignKey(f"{table}.id", ondelete="CASCADE"), **options)


def build_set_null_foreign_key(table: str, **options: Any) -> MappedColumn[Any]:
    """Return a foreign key column that becomes NULL when the referenced row is deleted."""
    return mapped_column(ForeignKey(f"{table}.id", ondelete="SET NULL"), **options)


class NamespaceOwnedMixin:
    """A mixin for tables whose rows belong to a project, or to a group for all its projects."""

    project_id: Mapped[int | None] = build_cascading_foreign_key("projects")
    group_id: Mapped[int | None] = build_cascading_foreign_key("groups")


def build_one_owner_constraint() -> CheckConstraint:
    """Return the constraint that a row belongs to either a project or a group."""
    return CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_holder")


def build_partial_index(
    name: str, *columns: Any, where: str | ColumnElement[bool], unique: bool = False
) -> Index:
    """Return an index over the rows that match a condition, for SQLite and Postgres."""
    condition = text(where) if isinstance(where, str) else where
    return Index(name, *columns, unique=unique, postgresql_where=condition, sqlite_where=condition)
