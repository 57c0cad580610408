"""Changes settings while the service runs."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from domain.upsert import insert_into
from models import InstanceSetting
from web.settings import changeable, read_change


def store_setting(name: str, text: str, *, session: Session, now: datetime) -> dict[str, Any]:
    """Keep a value in the database; every process has it within a second.

    Raises SettingsError for a name that cannot be changed or a value that it cannot have.
    """
    setting = changeable(name)
    value = read_change(name, text)
    insert = insert_into(InstanceSetting, session=session).values(
        name=setting.name, value=text, updated_at=now
    )
    session.execute(
        insert.on_conflict_do_update(
            index_elements=[InstanceSetting.name], set_={"value": text, "updated_at": now}
        )
    )
    return {"name": setting.name, "value": value}
