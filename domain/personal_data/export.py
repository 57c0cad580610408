"""Exports the personal data of a person."""

from datetime import datetime
from typing import Any

from sqlalchemy import inspect, select
from sqlalchemy.orm import Session

from domain.personal_data.holdings import HOLDINGS, Holding
from models import User


def export_person(user: User, *, session: Session, now: datetime) -> dict[str, Any]:
    """Return all stored data of a person by the names of `HOLDINGS`, without any secret."""
    held = {each.name: _rows(each, user, session) for each in HOLDINGS}
    account = held.pop("account")
    return {"exported_at": _written(now), "account": account[0], **held}


def _rows(holding: Holding, user: User, session: Session) -> list[dict[str, Any]]:
    columns = [getattr(holding.table, name) for name in holding.exported]
    statement = select(*columns).where(holding.of(user)).order_by(*_key(holding))
    return [
        {name: _written(value) for name, value in row._mapping.items()}  # noqa: SLF001 - public
        for row in session.execute(statement)
    ]


def _key(holding: Holding) -> tuple[Any, ...]:
    return tuple(inspect(holding.table).primary_key)


def _written(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
