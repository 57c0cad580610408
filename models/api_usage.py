"""Calls of the interfaces, counted by day, consumer and shape."""

from datetime import date, datetime

from sqlalchemy import BigInteger, Index, LargeBinary, String, Text, select
from sqlalchemy.orm import Mapped, column_property, mapped_column

from models.base import Base, Numbered, belongs_to


class CallShape(Numbered):
    """What calls have in common: method, route and the names of parameters, without any value."""

    __tablename__ = "call_shapes"

    #: SHA-256 of the other columns.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    method: Mapped[str] = mapped_column(String(16))
    #: A path with `:name` for each variable.
    route: Mapped[str] = mapped_column(Text)
    #: Names of parameters, separated by spaces; `…` stands for unknown ones.
    parameters: Mapped[str] = mapped_column(Text)
    #: Ids of scheduled changes that concerned the calls by their values, separated by spaces.
    changes: Mapped[str] = mapped_column(Text)


class CallCount(Numbered):
    """The calls of a shape that a consumer made on a day.

    A personal, project or group access token is a consumer, and an application with each of its
    users. Calls without a token have none of them.
    """

    __tablename__ = "call_counts"
    __table_args__ = (
        Index("ix_call_counts_shape_id_day", "shape_id", "day"),
        Index("ix_call_counts_user_id_day", "user_id", "day"),
        Index("ix_call_counts_application_id_day", "application_id", "day"),
    )

    #: SHA-256 of day, consumer and shape.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    day: Mapped[date] = mapped_column(index=True)
    shape_id: Mapped[int] = belongs_to("call_shapes")
    user_id: Mapped[int | None] = belongs_to("users")
    application_id: Mapped[int | None] = belongs_to("applications")
    personal_token_id: Mapped[int | None] = belongs_to("personal_access_tokens", index=True)
    count: Mapped[int] = mapped_column(BigInteger)
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    #: The IP address of the last call.
    last_address: Mapped[str | None] = mapped_column(String(64))
    #: Method and route, for exports of personal data.
    operation: Mapped[str] = column_property(
        select(CallShape.method + " " + CallShape.route)
        .where(CallShape.id == shape_id)
        .scalar_subquery(),
        deferred=True,
    )


class ChangeNotice(Base):
    """Somebody was told by mail of a change that their traffic will feel."""

    __tablename__ = "change_notices"

    user_id: Mapped[int] = belongs_to("users", primary_key=True, autoincrement=False)
    #: The id in the release schedule.
    change_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    told_at: Mapped[datetime]
