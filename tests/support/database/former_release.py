"""Databases that release 0.1.0 filled by its own commands, requests and worker.

The files are a copy of the SQLite database and a dump of the Postgres database.
`tests/support/described/instance.py` of that release created two objects of most kinds in them.
"""

import gzip
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.support.database.postgres import Postgres
from tests.support.service.live import SECRET_KEY
from web.settings.environment import Settings, parse_settings

#: Time shortly after the databases were filled, when nothing in them has expired.
THEN = datetime(2026, 11, 24, tzinfo=UTC)
_FILES = Path(__file__).with_name("release_0_1_0")


@dataclass(frozen=True, kw_only=True)
class FormerDatabase:
    """A database of release 0.1.0, and credentials of its users."""

    settings: Settings
    #: Personal access token of an administrator.
    token: str
    #: A project of the administrator with five alerts.
    project: str
    #: Path and key of an integration of that project.
    endpoint: str
    key: str


def on_sqlite(directory: Path) -> FormerDatabase:
    """Copy the SQLite database into a directory."""
    packed = (_FILES / "sqlite.db.gz").read_bytes()
    (directory / "gatebell.db").write_bytes(gzip.decompress(packed))
    return FormerDatabase(
        settings=_settings(directory, f"sqlite:///{directory / 'gatebell.db'}"),
        token="gbp-2bUn6eefpSQ4N4pMDlHyIgqxmf2pdFLGlI4hZiU1M5k2YA8F3",
        project="acme-3821-4/shop",
        endpoint="/acme-3821-4/shop/alerts/notify/hook/68df6915290dc1c3.json",
        key="gbk-xqvXBwmRHax6pV95e5lgUc9lhSQKtIoqeDMzTbg0fC00tEpPT",
    )


def on_postgres(postgres: Postgres, directory: Path) -> FormerDatabase:
    """Restore the Postgres database under another name; the directory is for files."""
    packed = (_FILES / "postgres.sql.gz").read_bytes()
    file = directory / "release_0_1_0.sql"
    file.write_bytes(gzip.decompress(packed))
    return FormerDatabase(
        settings=_settings(directory, postgres.loaded(file)),
        token="gbp-88EugoDtWCwQcBYK474YVYGJoyvicz1bmDVxFctiHez3M6r56",
        project="acme-5855-4/shop",
        endpoint="/acme-5855-4/shop/alerts/notify/hook/d3dca1bf5917ffe8.json",
        key="gbk-SKQJ3AVijJoWpRdNdsGkqwvWoDwr8kVDQlT1fFZS40u2NaZGz",
    )


def _settings(directory: Path, url: str) -> Settings:
    environment = {
        "BASE_URL": "http://localhost",
        "DATABASE_URL": url,
        "INSTANCE_PATH": str(directory),
        "SECRET_KEY": SECRET_KEY,
    }
    return parse_settings(environment)
