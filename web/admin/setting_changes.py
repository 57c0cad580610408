"""Changes settings at run time, with an audit event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.audit.events import Event, EventKind
from domain.database.upsert import insert_into
from domain.errors import InvalidParametersError, InvalidValue
from domain.oauth.personal_tokens.lifetimes import end_some_endless_tokens
from models import InstanceSetting
from web.http.audit_events import record_event
from web.services import services
from web.settings.fields import about
from web.settings.policies import token_lifetimes
from web.settings.reader import Settings, SettingsError, changeable, override, read_change

#: Settings that say whether access tokens may never end.
_DECIDE_ON_TOKENS = frozenset({"release", "personal_access_token_lifetime_days"})


def stored_settings(*, session: Session) -> dict[str, str]:
    """Return the settings stored in the database as texts, by name."""
    rows = session.execute(select(InstanceSetting.name, InstanceSetting.value))
    return {row.name: row.value for row in rows}


def settings_now(*, session: Session) -> Settings:
    """Return the settings as this transaction sees them; all processes follow within a second."""
    return override(services().live_settings.environment, stored_settings(session=session))


def store_setting(name: str, text: str, *, session: Session, now: datetime) -> dict[str, Any]:
    """Store a value in the database; every process applies it within a second.

    Raises SettingsError for a setting that cannot be changed or an invalid value.
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
    _record(setting.name, before=before, after=value)
    _apply(setting.name, session=session, now=now)
    return {"name": setting.name, "value": value}


def forget_setting(name: str, *, session: Session, now: datetime) -> dict[str, Any]:
    """Delete a stored value, so that the environment's or the default applies again.

    Raises SettingsError for a setting that cannot be changed.
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
        _record(setting.name, before=before, after=value, back="to what the start gives")
        _apply(setting.name, session=session, now=now)
    return {"name": setting.name, "value": value}


def _apply(name: str, *, session: Session, now: datetime) -> None:
    """Let what is stored follow a change: the worker does the rest, where there is much."""
    if name in _DECIDE_ON_TOKENS:
        lifetimes = token_lifetimes(settings_now(session=session))
        end_some_endless_tokens(lifetimes, session=session, now=now)


def _record(name: str, *, before: object, after: object, **more: str) -> None:
    """Record a change with its values; settings that can change at run time are never secret."""
    details = {"old": before, "new": after, **more}
    record_event(Event(kind=EventKind.SETTING_CHANGED, subject=name, details=details))


def store_settings(texts: Mapping[str, str], *, session: Session, now: datetime) -> None:
    """Store those of several values that are not in force already.

    Raises InvalidParametersError, which names every setting with an invalid value.
    """
    current = settings_now(session=session)
    values = read_changes(texts)
    for name, value in values.items():
        if value != getattr(current, name):
            store_setting(name, texts[name], session=session, now=now)


def read_changes(texts: Mapping[str, str]) -> Mapping[str, Any]:
    """Parse new values; raise InvalidParametersError for all that are invalid."""
    values: dict[str, Any] = {}
    problems: list[InvalidValue] = []
    for name, text in texts.items():
        setting = changeable(name)
        kind = about(setting).changeable_to
        try:
            values[name] = read_change(name, text)
        except SettingsError as error:
            reason = f"must be {kind.allowed}. {error.detail}".rstrip(". ")
            problems.append(InvalidValue(field=name, reason=reason))
        if not text and not (kind.may_be_empty or setting.default == ""):
            problems.append(InvalidValue(field=name, reason="is empty"))
    if problems:
        raise InvalidParametersError(problems)
    return values
