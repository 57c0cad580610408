"""The hosts that work on one database, each of which reports once a minute.

The reports let commands check what all hosts have in common, such as their secret keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.database.rows import insert_into
from domain.types.base import columns_of
from models import Host

#: The interval of reports.
REPORT_INTERVAL = timedelta(minutes=1)
#: A host without a report for longer counts as gone.
SILENCE = timedelta(minutes=3)
#: How long the report of a gone host is kept.
_REMEMBERED = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """The report of a host about itself."""

    name: str
    #: Fingerprints of its secret keys; the first is of the key that it writes with.
    key_fingerprints: tuple[str, ...]
    #: The newest migration that its code knows.
    revision: str
    #: Milliseconds that its clock is ahead of the database's.
    clock_lead_ms: int | None
    seen_at: datetime

    @property
    def place(self) -> str:
        """Machine and port."""
        return self.name.rpartition(" ")[0]

    @property
    def program(self) -> str:
        """What runs there: `web` or `worker`."""
        return self.name.rpartition(" ")[2]

    def as_json(self) -> dict[str, object]:
        """Return the report as commands print it."""
        return {
            "name": self.name,
            "writes_with": self.key_fingerprints[0],
            "knows": list(self.key_fingerprints),
            "revision": self.revision,
            "clock_lead_ms": self.clock_lead_ms,
            "seen_at": self.seen_at.isoformat(),
        }


def record_host_report(report: HostReport, *, session: Session) -> None:
    """Store the report of a host, and delete those of hosts that are long gone."""
    values = {
        "key_fingerprints": " ".join(report.key_fingerprints),
        "revision": report.revision,
        "clock_lead_ms": report.clock_lead_ms,
        "seen_at": report.seen_at,
    }
    session.execute(
        insert_into(Host, session=session)
        .values(name=report.name, **values)
        .on_conflict_do_update(index_elements=[Host.name], set_=values)
    )
    session.execute(delete(Host).where(Host.seen_at < report.seen_at - _REMEMBERED))


def list_present(*, session: Session, now: datetime) -> Sequence[HostReport]:
    """Return the reports of the hosts that are present, by name."""
    rows = session.scalars(select(Host).where(Host.seen_at > now - SILENCE).order_by(Host.name))
    return [
        HostReport(
            **columns_of(row, HostReport)
            | {"key_fingerprints": tuple(row.key_fingerprints.split())}
        )
        for row in rows
    ]
