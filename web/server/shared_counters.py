"""The directory in which the web processes of one server share their counters.

They count in files that they map into their memory: where no room is left for such a file, the
system ends whoever counts (SIGBUS). So the files lie in memory where that can be had, and have all
their room before anybody counts.

Nothing here imports prometheus_client: that decides when it is imported whether it shares.
"""

import os
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

#: Linux has a file system in memory here.
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
#: Less free memory there, as in a container that was given little, is left to others.
_ENOUGH_MEMORY = 32 * 2**20
#: What prometheus_client calls the files of a process, and the bytes that all our counters need
#: there if every address is asked for in every way (tests/plumbing/test_shared_counters.py).
_ROOM = {"counter": 2**20, "histogram": 4 * 2**20}


def shared_counters_path(instance_path: Path, *, server_pid: int) -> Path:
    """Return the directory of a server; another one of the same installation has its own."""
    return (_place_in_memory(instance_path) or instance_path / "metrics") / str(server_pid)


def _place_in_memory(instance_path: Path) -> Path | None:
    """Return the directory of an installation, if there is memory and nobody else has taken it."""
    name = sha256(str(instance_path.resolve()).encode()).hexdigest()[:16]
    place = _IN_MEMORY / f"gatebell-{os.geteuid()}-{name}"
    try:
        if shutil.disk_usage(_IN_MEMORY).free < _ENOUGH_MEMORY:
            return None
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError:
        return None
    is_ours = found.st_uid == os.geteuid() and found.st_mode & 0o777 == 0o700  # noqa: PLR2004
    return place if is_ours and not place.is_symlink() else None


def open_shared_counters(path: Path) -> None:
    """Make the directory, and remove those of servers that are gone."""
    with suppress(OSError):  # no room even for that: `reserve_counters` will find out
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in path.parent.iterdir():
            if not (other.name.isdigit() and _is_alive(int(other.name))):
                shutil.rmtree(other, ignore_errors=True)


def reserve_counters(path: Path, *, pid: int) -> bool:
    """Take all the room that a process needs to count; tell whether there is any."""
    files = {path / f"{kind}_{pid}.db": size for kind, size in _ROOM.items()}
    try:
        for file, size in files.items():
            file.write_bytes(bytes(size))
    except OSError:
        for file in files:
            file.unlink(missing_ok=True)
        return False
    return True


def close_shared_counters(path: Path) -> None:
    """Remove the directory, and the one around it if no other server uses it."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.parent.rmdir()


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        # A process of somebody else's is alive, and its directory is not ours to remove.
        with suppress(PermissionError):
            os.kill(pid, 0)
        return True
    return False
