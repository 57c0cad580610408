"""The hosts that work on one database: each says once a minute that it is there.

So commands can tell what all of them know, which no host could tell of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from models import Host

#: How often a host says that it is there.
PULSE = timedelta(minutes=1)
#: A host that was not heard of for longer is taken for gone.
SILENCE = timedelta(minutes=3)
#: So long it is remembered.
_REMEMBERED = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """What a host says of itself."""

    name: str
    #: Of the secret keys that it knows, first the one that it writes with.
    key_fingerprints: tuple[str, ...]
    #: The newest migration that its code knows.
    revision: str
    #: By how many milliseconds its clock is ahead of the database's.
    clock_lead_ms: int | None
    seen_at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return it as commands print it."""
        return {
            "name": self.name,
            "writes_with": self.key_fingerprints[0],
            "knows": list(self.key_fingerprints),
            "revision": self.revision,
            "clock_lead_ms": self.clock_lead_ms,
            "seen_at": self.seen_at.isoformat(),
        }


def note_sighting(sighting: Sighting, *, session: Session) -> None:
    """Remember that a host is there, and forget those that are long gone."""
    values = {
        "key_fingerprints": " ".join(sighting.key_fingerprints),
        "revision": sighting.revision,
        "clock_lead_ms": sighting.clock_lead_ms,
        "seen_at": sighting.seen_at,
    }
    session.execute(
        insert_into(Host, session=session)
        .values(name=sighting.name, **values)
        .on_conflict_do_update(index_elements=[Host.name], set_=values)
    )
    session.execute(delete(Host).where(Host.seen_at < sighting.seen_at - _REMEMBERED))


def list_present(*, session: Session, now: datetime) -> Sequence[Sighting]:
    """Return the hosts that are there, by name."""
    rows = session.scalars(select(Host).where(Host.seen_at > now - SILENCE).order_by(Host.name))
    return [
        Sighting(
            name=row.name,
            key_fingerprints=tuple(row.key_fingerprints.split()),
            revision=row.revision,
            clock_lead_ms=row.clock_lead_ms,
            seen_at=row.seen_at,
        )
        for row in rows
    ]
