"""Program for containers that runs the background worker and restarts it if it dies or hangs.

systemd provides this by itself (`deploy/systemd/gatebell-worker.service`).
"""

import sys

from web.logging import configure_logging
from web.memory import keep_what_is_loaded
from web.server.serve import supervised_worker
from web.server.temporary_files import check_temporary_directory
from web.settings.reader import SettingsError, settings_from_environment
from web.standard_streams import unblock_standard_streams


def main() -> None:
    """Run the worker until the process is stopped."""
    keep_what_is_loaded()
    unblock_standard_streams()
    try:
        settings = settings_from_environment()
        check_temporary_directory()
    except SettingsError as error:
        sys.exit(str(error))
    configure_logging(settings)
    sys.exit(supervised_worker(settings).run())


if __name__ == "__main__":
    main()
