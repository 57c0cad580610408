"""Changes settings at run time: actions beside the table of settings, which only `web` knows."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.database.upsert import insert_into
from domain.errors import InvalidParametersError, InvalidValue
from domain.oauth.personal_tokens.lifetimes import end_some_endless_tokens
from models import InstanceSetting
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


@action("instance_settings.change")
def store_setting(work: Work, name: str, text: str) -> dict[str, Any]:
    """Store a value in the database; every process applies it within a second.

    Raises SettingsError for a setting that cannot be changed or an invalid value.
    """
    setting = changeable(name)
    value = read_change(name, text)
    before = getattr(settings_now(session=work.session), setting.name)
    given = {"value": text, "updated_at": work.now}
    insert = insert_into(InstanceSetting, session=work.session).values(name=setting.name, **given)
    work.session.execute(
        insert.on_conflict_do_update(index_elements=[InstanceSetting.name], set_=given)
    )
    _take_up(work, setting.name, before=before, after=value)
    return {"name": setting.name, "value": value}


@action("instance_settings.change")
def forget_setting(work: Work, name: str) -> dict[str, Any]:
    """Delete a stored value, so that the environment's or the default applies again.

    Raises SettingsError for a setting that cannot be changed.
    """
    setting = changeable(name)
    before = getattr(settings_now(session=work.session), setting.name)
    gone = work.session.scalar(
        delete(InstanceSetting)
        .where(InstanceSetting.name == setting.name)
        .returning(InstanceSetting.name)
    )
    value = getattr(services().live_settings.environment, setting.name)
    if gone is not None:
        _take_up(work, setting.name, before=before, after=value, back="to what the start gives")
    return {"name": setting.name, "value": value}


def _take_up(work: Work, name: str, *, before: object, after: object, **more: str) -> None:
    """Record a change with its values, and let what is stored follow it.

    Settings that can change at run time are never secret. The worker does the rest, where there is
    much.
    """
    details = {"old": before, "new": after, **more}
    work.record(EventKind.SETTING_CHANGED, subject=name, details=details)
    if name in _DECIDE_ON_TOKENS:
        lifetimes = token_lifetimes(settings_now(session=work.session))
        end_some_endless_tokens(lifetimes, session=work.session, now=work.now)


def store_settings(work: Work, texts: Mapping[str, str]) -> None:
    """Store those of several values that are not in force already.

    Raises InvalidParametersError, which names every setting with an invalid value.
    """
    current = settings_now(session=work.session)
    values = read_changes(texts)
    for name, value in values.items():
        if value != getattr(current, name):
            store_setting(work, name, texts[name])


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
