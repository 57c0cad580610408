"""Settings as they are now, for what runs in the background."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import InstanceSetting
from web.settings.reader import Settings, override


def current_settings(settings: Settings, *, session: Session) -> Settings:
    """Return the settings of the environment with those that administrators have changed."""
    stored = {row.name: row.value for row in session.scalars(select(InstanceSetting))}
    return override(settings, stored)
