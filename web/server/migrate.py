"""`make migrate`: migrates the database and exits."""

import sys

from web.database.queue_tables import make_queue_tables
from web.database.schema import migrate
from web.database.start_checks import CannotStartError, reasons_in_a_sentence
from web.garbage import keep_what_is_loaded
from web.logging import configure_logging
from web.settings.reader import SettingsError, settings_from_environment


def main() -> None:
    """Migrate the database of the environment."""
    keep_what_is_loaded()
    try:
        settings = settings_from_environment()
        configure_logging(settings)
        with reasons_in_a_sentence():
            migrate(settings)
            make_queue_tables(settings)
    except (SettingsError, CannotStartError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
