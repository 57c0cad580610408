"""API calls, counted by day, consumer and call signature (method, route and parameter names)."""

from datetime import date, datetime

from sqlalchemy import BigInteger, Index, LargeBinary, String, Text, select
from sqlalchemy.orm import Mapped, column_property, mapped_column

from models.base import Base, BaseWithId, build_cascading_foreign_key


class CallSignature(BaseWithId):
    """The common properties of calls: method, route and parameter names, without any values."""

    __tablename__ = "call_shapes"

    #: SHA-256 of the other columns.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    method: Mapped[str] = mapped_column(String(16))
    #: Path with `:name` for each variable.
    route: Mapped[str] = mapped_column(Text)
    #: Names of parameters, separated by spaces. `…` stands for unknown parameters.
    parameters: Mapped[str] = mapped_column(Text)
    #: IDs of the scheduled changes that affect the calls because of their parameter values,
    #: separated by spaces.
    changes: Mapped[str] = mapped_column(Text)


class CallCount(BaseWithId):
    """The number of calls with the same signature that a consumer made on a day.

    A consumer is a personal, project or group access token, or an application with one of its
    users. Calls without a token have no consumer.
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
    shape_id: Mapped[int] = build_cascading_foreign_key("call_shapes")
    user_id: Mapped[int | None] = build_cascading_foreign_key("users")
    application_id: Mapped[int | None] = build_cascading_foreign_key("applications")
    personal_token_id: Mapped[int | None] = build_cascading_foreign_key(
        "personal_access_tokens", index=True
    )
    count: Mapped[int] = mapped_column(BigInteger)
    #: Number of calls that failed with status 400 or above.
    errors: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    #: IP address of the last call.
    last_address: Mapped[str | None] = mapped_column(String(64))
    #: Method and route, for exports of personal data.
    operation: Mapped[str] = column_property(
        select(CallSignature.method + " " + CallSignature.route)
        .where(CallSignature.id == shape_id)
        .scalar_subquery(),
        deferred=True,
    )


class ChangeNotice(Base):
    """A record that a user was notified by email of a change that affects their calls."""

    __tablename__ = "change_notices"

    user_id: Mapped[int] = build_cascading_foreign_key(
        "users", primary_key=True, autoincrement=False
    )
    #: ID of the change in the release schedule.
    change_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    told_at: Mapped[datetime]
