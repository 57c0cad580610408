"""Memory that this host provides for the service, and memory that the service needs."""

import os
from contextlib import suppress
from pathlib import Path

from domain.core.thread_pools import HASHING_LANES
from web.settings.environment import Settings

_MIB = 1024 * 1024
#: Memory in MiB of the web server, its first process and the worker (docs/capacity.md).
_BASE_MIB = 380
#: Memory in MiB of each additional web process.
_PROCESS_MIB = 40
#: Locations of control group limits, for version 2 and version 1.
_CONTROL_GROUP_FILES = (
    (Path("/sys/fs/cgroup"), "", "memory.max"),
    (Path("/sys/fs/cgroup/memory"), "memory", "memory.limit_in_bytes"),
)


def count_parallel_hashes() -> int:
    """Return the number of passwords that a host hashes at the same time."""
    return max(1, (os.cpu_count() or 1) // HASHING_LANES)


def compute_required_memory_mib(settings: Settings) -> int:
    """Return the memory in MiB that a host needs with these settings while users sign in."""
    hashes = min(count_parallel_hashes(), settings.web_concurrency)
    hashing = hashes * settings.password_hash_memory_kib // 1024
    return _BASE_MIB + (settings.web_concurrency - 1) * _PROCESS_MIB + hashing


def find_memory_limit_mib() -> int | None:
    """Return the memory limit of the machine or of this process's control group in MiB.

    Return the smaller limit, or None if both limits are unknown.
    """
    found = [*_list_control_group_limits()]
    with suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found) // _MIB if found else None


def find_memory_warning(settings: Settings) -> str | None:
    """Return a warning if this host has too little memory for its settings, or None."""
    limit, needed = find_memory_limit_mib(), compute_required_memory_mib(settings)
    if limit is None or limit >= needed:
        return None
    advice = "" if settings.profile == "small" else ", or set PROFILE=small"
    return (
        f"This host has {limit} MiB of memory for the service, but the service needs {needed} MiB "
        f"with its settings. The system may kill processes. Provide more memory{advice}."
    )


def _list_control_group_limits() -> list[int]:
    found: list[int] = []
    for root, controller, name in _CONTROL_GROUP_FILES:
        path = _find_own_control_group(controller)
        for folder in (root / path, *(root / path).parents) if path is not None else ():
            with suppress(OSError, ValueError):
                found.append(int((folder / name).read_text(encoding="ascii")))
            if folder == root:
                break
    return found


def _find_own_control_group(controller: str) -> str | None:
    """Return the path of this process's control group, or None.

    In version 2, the line of the control group names no controller.
    """
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path.strip("/")
    return None
