"""Writes a new migration from the differences between the models and the database.

Usage: `make migration NAME="what the migration does"`.
"""

import sys
import warnings
from collections.abc import Iterable

from alembic import command
from alembic.operations import MigrationScript
from sqlalchemy import Connection

from web.database.engine import open_engine
from web.database.schema import (
    build_alembic_configuration,
    get_newest_known_revision,
    migrate_to_newest,
)
from web.settings.environment import load_settings


def main() -> None:
    """Migrate the database, and write a migration for the remaining differences to the models."""
    name = " ".join(sys.argv[1:]).strip()
    if not name:
        sys.exit('Say what it does: make migration NAME="keep the words of alerts"')
    settings = load_settings()
    migrate_to_newest(settings)
    engine = open_engine(settings)
    try:
        with engine.connect() as connection:
            _write_migration(connection, name)
    finally:
        engine.dispose()


def _write_migration(connection: Connection, name: str) -> None:
    number = f"{int(get_newest_known_revision()) + 1:04}"
    # SQLite cannot compare everything; tests/architecture/test_migrations.py compares the rest on
    # Postgres.
    warnings.filterwarnings("ignore", message="autogenerate skipping")
    command.revision(
        build_alembic_configuration(connection),
        name,
        autogenerate=True,
        rev_id=number,
        process_revision_directives=_warn_if_empty,
    )


def _warn_if_empty(_context: object, _revision: object, scripts: Iterable[MigrationScript]) -> None:
    if all(each.upgrade_ops is None or each.upgrade_ops.is_empty() for each in scripts):
        sys.stderr.write(
            "It is empty: the database has everything that models/__init__.py imports.\n"
        )


if __name__ == "__main__":
    main()
