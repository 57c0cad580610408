"""Program for `make migrate`, which migrates the database and exits.

`python -m web.server.migrate --to 0067` migrates back to a revision, and removes the data that
later migrations added.
"""

import sys
from argparse import ArgumentParser

from web.database.schema import UnknownRevisionError, migrate_to_newest, migrate_to_revision
from web.database.startup_checks import convert_database_errors
from web.database.startup_errors import CannotStartError
from web.logging import configure_logging
from web.memory import freeze_loaded_objects
from web.settings.environment import SettingsError, load_settings


def main(revision: str | None = None) -> None:
    """Migrate the configured database to the newest revision or to the given revision."""
    freeze_loaded_objects()
    try:
        settings = load_settings()
        configure_logging(settings)
        with convert_database_errors():
            if revision is None:
                migrate_to_newest(settings)
            else:
                migrate_to_revision(settings, revision)
    except (SettingsError, CannotStartError, UnknownRevisionError) as error:
        sys.exit(str(error))


def _parse_revision(arguments: list[str]) -> str | None:
    parser = ArgumentParser(prog="python -m web.server.migrate")
    parser.add_argument("--to", metavar="REVISION", help="target migration, such as 0067")
    found: str | None = parser.parse_args(arguments).to
    return found


if __name__ == "__main__":
    main(_parse_revision(sys.argv[1:]))
