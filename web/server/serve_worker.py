"""Program for containers that runs the background worker and restarts it if it dies or hangs.

systemd does not need this program (`deploy/systemd/gatebell-worker.service`).
"""

import sys

from web.logging import configure_logging
from web.memory import freeze_loaded_objects
from web.server.serve import build_worker_supervisor
from web.server.temporary_files import check_temporary_directory
from web.settings.environment import SettingsError, load_settings
from web.standard_streams import unblock_standard_streams


def main() -> None:
    """Run the worker until the process is stopped."""
    freeze_loaded_objects()
    unblock_standard_streams()
    try:
        settings = load_settings()
        check_temporary_directory()
    except SettingsError as error:
        sys.exit(str(error))
    configure_logging(settings)
    sys.exit(build_worker_supervisor(settings).supervise_programs())


if __name__ == "__main__":
    main()
