"""Checks that a directory for temporary files is writable, before programs need it."""

import tempfile

from web.settings.environment import SettingsError


def check_temporary_directory() -> None:
    """Check that a directory for temporary files is writable.

    Raise SettingsError if no such directory is writable.
    """
    try:
        tempfile.gettempdir()
    except OSError as error:
        raise SettingsError(
            "TMPDIR must name a writable directory, because /tmp is not writable. In a container "
            "with a read-only file system, mount a tmpfs at /tmp."
        ) from error
