"""Refused requests of applications at the token endpoint and beside it."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class TokenRefusal(Base):
    """One refused request that named an application; a few of each reason are kept.

    Anybody can send them, since a client_id is public: it is no proof that the application did.
    """

    __tablename__ = "token_refusals"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    application_id: Mapped[int] = mapped_column(ForeignKey("applications.id", ondelete="CASCADE"))
    #: A `domain.oauth.setting_up.refusal_reasons.RefusalReason`.
    reason: Mapped[str] = mapped_column(String(32))
    #: The `grant_type`, or the name of another endpoint, such as that for authorization.
    request: Mapped[str] = mapped_column(String(64))
    #: The error code of RFC 6749 section 4.1.2.1 or 5.2, and the sentence that the client got.
    error: Mapped[str] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(Text)
    refused_at: Mapped[datetime] = mapped_column(index=True)
    #: IP address; null for authorization requests, which come from people's browsers.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: What was sent in the place of a registered redirect URI, without what can be a secret.
    redirect_uri: Mapped[str | None] = mapped_column(Text)
    #: The number of later refusals like this one that are counted here instead of stored.
    skipped: Mapped[int] = mapped_column(default=0)

    __table_args__ = (
        Index("ix_token_refusals_application_id_reason_id", "application_id", "reason", "id"),
    )
