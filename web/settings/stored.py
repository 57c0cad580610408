"""Current settings: the environment's settings with the changes of administrators."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import InstanceSetting
from web.settings.reader import Settings, override

STORED_SETTINGS = select(InstanceSetting.name, InstanceSetting.value)


def stored_settings(*, session: Session) -> dict[str, str]:
    """Return the settings stored in the database as texts, by name."""
    return {row.name: row.value for row in session.execute(STORED_SETTINGS)}


def current_settings(settings: Settings, *, session: Session) -> Settings:
    """Return the settings of the environment, overridden by the stored settings."""
    return override(settings, stored_settings(session=session))
