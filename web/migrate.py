"""`make migrate`: brings the database to the newest shape, and does nothing else."""

import sys

from web.database import migrate
from web.logging import configure_logging
from web.settings import SettingsError, settings_from_environment


def main() -> None:
    """Migrate the database that the environment names."""
    try:
        settings = settings_from_environment()
    except SettingsError as error:
        sys.exit(str(error))
    configure_logging(settings)
    migrate(settings)


if __name__ == "__main__":
    main()
