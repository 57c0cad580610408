"""Directory for the metrics that the web processes of one server share.

Counters are memory-mapped files, and on a full file system a write kills the process (SIGBUS). The
files are therefore in memory if possible, and their space is reserved in advance.

This module must not import prometheus_client, which decides on import whether to share metrics.
"""

import os
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

#: In-memory file system of Linux.
_MEMORY_FILE_SYSTEM = Path("/dev/shm")  # noqa: S108 - the service creates a private directory in it
#: Minimum free space in bytes. Small containers have less, and then the counters are on disk.
_MIN_FREE_BYTES = 62 * 2**20
#: Sizes of prometheus_client's files in bytes, sufficient for every route and method
#: (tests/web/test_shared_counters.py).
_FILE_SIZES = {"counter": 4 * 2**20, "histogram": 16 * 2**20}


def get_shared_counters_path(instance_path: Path, *, server_pid: int) -> Path:
    """Return the metrics directory of the server with the given process ID."""
    return (_find_memory_directory(instance_path) or instance_path / "metrics") / str(server_pid)


def _find_memory_directory(instance_path: Path) -> Path | None:
    """Return the in-memory directory of an installation, or None if it cannot be used."""
    name = sha256(str(instance_path.resolve()).encode()).hexdigest()[:16]
    directory = _MEMORY_FILE_SYSTEM / f"gatebell-{os.geteuid()}-{name}"
    try:
        if shutil.disk_usage(_MEMORY_FILE_SYSTEM).free < _MIN_FREE_BYTES:
            return None
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
    except OSError:
        return None
    is_ours = found.st_uid == os.geteuid() and found.st_mode & 0o777 == 0o700  # noqa: PLR2004 - rwx for us alone
    return directory if is_ours and not directory.is_symlink() else None


def open_shared_counters(path: Path) -> None:
    """Create the directory, and remove the directories of servers that have ended."""
    with suppress(OSError):  # `reserve_counters` will detect the missing space
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in path.parent.iterdir():
            if not (other.name.isdigit() and _is_alive(int(other.name))):
                shutil.rmtree(other, ignore_errors=True)


def reserve_counters(path: Path, *, pid: int) -> bool:
    """Reserve the space for a process's counters and return whether that succeeded."""
    files = {path / f"{kind}_{pid}.db": size for kind, size in _FILE_SIZES.items()}
    try:
        for file, size in files.items():
            file.write_bytes(bytes(size))
    except OSError:
        for file in files:
            file.unlink(missing_ok=True)
        return False
    return True


def close_shared_counters(path: Path) -> None:
    """Remove the directory, and its parent if no other server uses it."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.parent.rmdir()


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        # A PermissionError means that the process belongs to another user and is alive.
        with suppress(PermissionError):
            os.kill(pid, 0)
        return True
    return False
