"""`make migrate`: brings the database to the newest shape, and does nothing else."""

import sys

from web.logging import configure_logging
from web.queue_tables import make_queue_tables
from web.schema import migrate
from web.settings import SettingsError, settings_from_environment
from web.start_checks import CannotStartError, reasons_in_a_sentence


def main() -> None:
    """Migrate the database that the environment names."""
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
