"""The folder of the demo, and the state that is kept between starts."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from demo.arrangement import DemoObjects, IntegrationSender
from models import Group, User
from web.database.engine import open_engine
from web.instance_files import write_private_file
from web.pages.templating import pluralize
from web.settings.environment import Settings

_STATE_FILE = "demo.json"


class DatabaseNotEmptyError(Exception):
    """Error for a database with data that the demo did not create.

    The message explains what to do.
    """


@dataclass(frozen=True, kw_only=True)
class DemoState:
    """The state that later starts need from the run that filled the database."""

    #: Password of all users.
    password: str = field(repr=False)
    #: Port on the loopback interface that receives pages and webhooks.
    telephones: int
    #: Client id of an application that some users have approved.
    application_id: str
    places: DemoObjects
    #: Client id of an application for devices. Empty if an earlier version filled the database.
    television_id: str = ""

    @classmethod
    def read_stored_state(cls, settings: Settings) -> Self | None:
        """Return the stored state, or None if the database has not been filled yet."""
        file = settings.instance_path / _STATE_FILE
        if not file.exists():
            return None
        found = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{**found, "places": _load_demo_objects(found["places"])})

    def write_state(self, settings: Settings) -> None:
        """Store the state in a file that only the owner can read, since it contains keys."""
        write_private_file(settings.instance_path / _STATE_FILE, json.dumps(asdict(self)))


def _load_demo_objects(found: Mapping[str, Any]) -> DemoObjects:
    senders = {
        each: IntegrationSender(**found[each]) for each in ("prometheus", "checks", "payments")
    }
    return DemoObjects(**{**found, **senders})


def check_is_empty(settings: Settings) -> None:
    """Check that the database has no accounts or groups. Raise DatabaseNotEmptyError if it has."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            counts = {
                "account": session.scalar(select(func.count()).select_from(User)) or 0,
                "group": session.scalar(select(func.count()).select_from(Group)) or 0,
            }
    finally:
        engine.dispose()
    if any(counts.values()):
        held = " and ".join(pluralize(count, what) for what, count in counts.items() if count)
        message = (
            f"The database holds {held}, and the demonstration wants one of its own: nothing was "
            "changed. Leave DATABASE_URL and INSTANCE_PATH out, or remove "
            f"{settings.instance_path} if it was left half done."
        )
        raise DatabaseNotEmptyError(message)


def get_demo_folder(given: Mapping[str, str], root: Path) -> Path:
    """Return the folder of the demo: INSTANCE_PATH, or `build/demo` by default."""
    return Path(given.get("INSTANCE_PATH") or root / "build" / "demo")
