"""Web servers with their marks, and the times in which none received requests."""

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class WebServer(Base):
    """A web server that receives requests, with its last mark."""

    __tablename__ = "web_servers"

    #: Machine and port: `web-1:8000`.
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    seen_at: Mapped[datetime]


class UnreachableTime(Base):
    """A time in which no web server received requests."""

    __tablename__ = "unreachable_times"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime] = mapped_column(index=True)
