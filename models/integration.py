"""Integrations, through which a project receives alerts."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Integration(Base):
    """A receiver of alerts, or the link to an external on-call tool."""

    __tablename__ = "integrations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    #: http, prometheus or external.
    type: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(255))
    active: Mapped[bool] = mapped_column(default=True)
    #: 16 hexadecimal characters: the last part of the receiving URL.
    endpoint_identifier: Mapped[str] = mapped_column(String(32), unique=True)
    #: Keyed hash of the key, for the comparison with the one in a request.
    key_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: The encrypted key, because maintainers can display it again.
    key_ciphertext: Mapped[str] = mapped_column(Text)
    key_last_used_at: Mapped[datetime | None]
    previous_key_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    previous_key_expires_at: Mapped[datetime | None]
    previous_key_last_used_at: Mapped[datetime | None]
    #: URL of Prometheus or of the on-call tool, depending on the type.
    api_url: Mapped[str | None] = mapped_column(Text)
    #: A payload of the sender, and the mapping of its values to the fields of an alert
    #: (`domain.alerts.reading.mapping`).
    sample: Mapped[str | None] = mapped_column(Text)
    mapping: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: An open alert without a report for so long is resolved; NULL: never.
    resolve_after_minutes: Mapped[int | None]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_integrations_project_id_type_id", "project_id", "type", "id"),
        # For senders whose URL does not name the integration.
        Index("ix_integrations_key_digest", "key_digest"),
        Index("ix_integrations_previous_key_digest", "previous_key_digest"),
    )
