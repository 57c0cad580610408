"""The folder of the demonstration, and what it remembers between two starts."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from demo.arrangement import Places, Sender
from models import Group, User
from web.database.engine import open_engine
from web.instance_files import write_private_file
from web.pages.templating import pluralize
from web.settings.reader import Settings

_FILE = "demo.json"


class NotEmptyError(Exception):
    """The database has something that the demonstration did not put there; says what to do."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a start needs to know of the one that furnished the database."""

    #: Of everybody.
    password: str = field(repr=False)
    #: The port of loopback at which pages and webhooks arrive.
    telephones: int
    #: The client id of an application that some have approved.
    application_id: str
    places: Places
    #: The client id of an application for devices; empty if an earlier version furnished.
    television_id: str = ""

    @classmethod
    def read(cls, settings: Settings) -> Self | None:
        """Return what was remembered, or None if nothing was furnished yet."""
        file = settings.instance_path / _FILE
        if not file.exists():
            return None
        found = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{**found, "places": _places(found["places"])})

    def write(self, settings: Settings) -> None:
        """Remember it, readable for the owner alone: it holds keys."""
        write_private_file(settings.instance_path / _FILE, json.dumps(asdict(self)))


def _places(found: Mapping[str, Any]) -> Places:
    senders = {each: Sender(**found[each]) for each in ("prometheus", "checks", "payments")}
    return Places(**{**found, **senders})


def check_is_empty(settings: Settings) -> None:
    """Raise NotEmptyError if somebody works with the database, which is migrated."""
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
        raise NotEmptyError(message)


def folder_of(given: Mapping[str, str], root: Path) -> Path:
    """Return the folder of the demonstration: that of the environment, or `build/demo`."""
    return Path(given.get("INSTANCE_PATH") or root / "build" / "demo")
