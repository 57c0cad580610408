"""The directory in which the web processes of one server share their counters.

Nothing here imports prometheus_client: that decides when it is imported whether it shares.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path


def shared_counters_path(instance_path: Path, *, server_pid: int) -> Path:
    """Return the directory of a server; another one of the same installation has its own."""
    return instance_path / "metrics" / str(server_pid)


def open_shared_counters(path: Path) -> None:
    """Make the directory, and remove those of servers that are gone."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for other in path.parent.iterdir():
        if not (other.name.isdigit() and _is_alive(int(other.name))):
            shutil.rmtree(other, ignore_errors=True)


def close_shared_counters(path: Path) -> None:
    """Remove the directory."""
    shutil.rmtree(path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        # A process of somebody else's is alive, and its directory is not ours to remove.
        with suppress(PermissionError):
            os.kill(pid, 0)
        return True
    return False
