"""Program of `make migrate`, which migrates the database and exits.

`python -m web.server.migrate --to 0067` returns to a migration, and loses the data that later
migrations added.
"""

import sys
from argparse import ArgumentParser

from web.database.schema import UnknownRevisionError, migrate, move_to
from web.database.start_checks import reasons_in_a_sentence
from web.database.start_errors import CannotStartError
from web.logging import configure_logging
from web.memory import keep_what_is_loaded
from web.settings.reader import SettingsError, settings_from_environment


def main(revision: str | None = None) -> None:
    """Migrate the database of the environment to the newest revision or to the given revision."""
    keep_what_is_loaded()
    try:
        settings = settings_from_environment()
        configure_logging(settings)
        with reasons_in_a_sentence():
            if revision is None:
                migrate(settings)
            else:
                move_to(settings, revision)
    except (SettingsError, CannotStartError, UnknownRevisionError) as error:
        sys.exit(str(error))


def _revision_in(arguments: list[str]) -> str | None:
    parser = ArgumentParser(prog="python -m web.server.migrate")
    parser.add_argument("--to", metavar="REVISION", help="target migration, such as 0067")
    found: str | None = parser.parse_args(arguments).to
    return found


if __name__ == "__main__":
    main(_revision_in(sys.argv[1:]))
