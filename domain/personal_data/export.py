"""Exports the personal data of a person."""

from datetime import datetime
from typing import Any

from sqlalchemy import inspect, select
from sqlalchemy.orm import Session

from domain.accounts.users import UserView
from domain.personal_data.inventory import PERSONAL_DATA, PersonalDataTable


def export_person(user: UserView, *, session: Session, now: datetime) -> dict[str, object]:
    """Return all stored data of a person by the names of `PERSONAL_DATA`, without any secret."""
    held = {each.name: _rows(each, user, session) for each in PERSONAL_DATA}
    account = held.pop("account")
    return {"exported_at": _written(now), "account": account[0], **held}


def _rows(table: PersonalDataTable, user: UserView, session: Session) -> list[dict[str, object]]:
    columns = [getattr(table.model, name) for name in table.exported.split()]
    statement = select(*columns).where(table.of(user)).order_by(*_key(table))
    return [
        {
            name: _written(table.rewritten[name](value) if name in table.rewritten else value)
            for name, value in row.items()
        }
        for row in session.execute(statement).mappings()
    ]


def _key(table: PersonalDataTable) -> tuple[Any, ...]:
    return tuple(inspect(table.model).primary_key)


def _written(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
