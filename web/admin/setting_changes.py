"""Changes settings while the service runs, and writes down who did so."""

from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.audit.events import Event, EventKind
from domain.database.upsert import insert_into
from models import InstanceSetting
from web.http.audit import note
from web.services import services
from web.settings.reader import Settings, changeable, override, read_change


def stored_settings(*, session: Session) -> dict[str, str]:
    """Return what was changed while the service ran, as it was written, by name."""
    rows = session.execute(select(InstanceSetting.name, InstanceSetting.value))
    return {row.name: row.value for row in rows}


def settings_now(*, session: Session) -> Settings:
    """Return the settings as this transaction sees them, which all processes do in a second."""
    return override(services().live_settings.environment, stored_settings(session=session))


def store_setting(name: str, text: str, *, session: Session, now: datetime) -> dict[str, Any]:
    """Keep a value in the database; every process has it within a second.

    Raises SettingsError for a name that cannot be changed or a value that it cannot have.
    """
    setting = changeable(name)
    value = read_change(name, text)
    before = getattr(settings_now(session=session), setting.name)
    insert = insert_into(InstanceSetting, session=session).values(
        name=setting.name, value=text, updated_at=now
    )
    session.execute(
        insert.on_conflict_do_update(
            index_elements=[InstanceSetting.name], set_={"value": text, "updated_at": now}
        )
    )
    _note(setting.name, before=before, after=value)
    return {"name": setting.name, "value": value}


def forget_setting(name: str, *, session: Session) -> dict[str, Any]:
    """Go back to the value that the environment gives, or to the default.

    Raises SettingsError for a name that cannot be changed.
    """
    setting = changeable(name)
    before = getattr(settings_now(session=session), setting.name)
    gone = session.scalar(
        delete(InstanceSetting)
        .where(InstanceSetting.name == setting.name)
        .returning(InstanceSetting.name)
    )
    value = getattr(services().live_settings.environment, setting.name)
    if gone is not None:
        _note(setting.name, before=before, after=value, back="to what the start gives")
    return {"name": setting.name, "value": value}


def _note(name: str, *, before: object, after: object, **more: str) -> None:
    """Write a change down; what can change while the service runs is never a secret."""
    details = {"old": before, "new": after, **more}
    note(Event(kind=EventKind.SETTING_CHANGED, subject=name, details=details))
