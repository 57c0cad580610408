"""Current settings: the environment's settings with administrators' changes."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import InstanceSetting
from web.settings.environment import Settings, apply_stored_settings

STORED_SETTINGS_QUERY = select(InstanceSetting.name, InstanceSetting.value)


def read_stored_settings(*, session: Session) -> dict[str, str]:
    """Return the settings stored in the database as strings, by name."""
    return {row.name: row.value for row in session.execute(STORED_SETTINGS_QUERY)}


def read_current_settings(settings: Settings, *, session: Session) -> Settings:
    """Return the settings from the environment, overridden by the stored settings."""
    return apply_stored_settings(settings, read_stored_settings(session=session))
