"""State of this host: free disk space, the rate limit store, and ignored environment variables."""

import os
from collections.abc import Iterator
from pathlib import Path

from limits.storage import Storage

from web.admin.security_warnings import list_security_warnings
from web.http.extensions import limiter
from web.metrics import Gauge
from web.settings.environment import Settings, list_ignored_variables


def list_host_metrics(settings: Settings) -> Iterator[Gauge]:
    """Yield metrics about the disk space, rate limit store and configuration of this host."""
    places = (("instance", settings.instance_path), ("repositories", settings.repositories_path))
    for name, path in places:
        yield from _list_disk_metrics(name, path)
    if not settings.counts_rate_limits_per_host:
        yield Gauge(
            "gatebell_rate_limit_store_up",
            "Whether the shared rate limit store responds.",
            int(is_rate_limit_store_responding(limiter.storage)),
        )
    yield Gauge(
        "gatebell_configuration_warnings",
        "Number of settings that weaken security, and of ignored variables that look like one.",
        len([*list_security_warnings(settings), *list_ignored_variables()]),
    )


def is_rate_limit_store_responding(storage: Storage) -> bool:
    """Return whether the rate limit store responds."""
    try:
        return bool(storage.check())
    except Exception:  # noqa: BLE001 - each client raises its own errors
        return False


def _list_disk_metrics(name: str, path: Path) -> Iterator[Gauge]:
    try:
        found = os.statvfs(_find_existing_parent(path))
    except OSError:
        return
    labels = {"place": name}
    yield Gauge(
        "gatebell_disk_free_bytes",
        "Free disk space for the instance and for Git repositories.",
        found.f_bavail * found.f_frsize,
        labels,
    )
    yield Gauge(
        "gatebell_disk_size_bytes",
        "Size of the file system of the instance and of Git repositories.",
        found.f_blocks * found.f_frsize,
        labels,
    )


def _find_existing_parent(path: Path) -> Path:
    return path if path.exists() or path == path.parent else _find_existing_parent(path.parent)
