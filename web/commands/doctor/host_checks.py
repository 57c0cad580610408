"""Doctor checks for the host's memory, disks, backups and Git installation."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from domain.core.job_results import get_backup_state
from web.commands.backups.postgres import find_program_version
from web.commands.doctor.results import CheckResult, failed, format_duration, ok, warning
from web.database.sessions import Pooler, find_pooler
from web.database.startup_checks import convert_database_errors
from web.extensions import db
from web.server.memory_limits import (
    compute_required_memory_mib,
    find_memory_limit_mib,
    find_memory_warning,
)
from web.services import get_current_time, get_git
from web.settings.environment import Settings

_MIB, _GIB = 1024**2, 1024**3
#: Thresholds of free space in bytes, for a failure and for a warning. Below the first threshold,
#: writes soon fail.
_FAILURE_FREE_BYTES, _WARNING_FREE_BYTES = 256 * _MIB, 2048 * _MIB
#: Number of free inodes below which writes soon fail, regardless of free space.
_MIN_FREE_INODES = 1_000


def check_memory(settings: Settings) -> Iterator[CheckResult]:
    """Compare the memory of this host with the memory that its settings require."""
    said, limit = find_memory_warning(settings), find_memory_limit_mib()
    if said:
        yield warning(said)
    else:
        available = f"{limit} MiB" if limit else "an unknown amount"
        needed = compute_required_memory_mib(settings)
        yield ok(f"The service needs {needed} MiB of memory, and has {available}.")


def check_disk(settings: Settings) -> Iterator[CheckResult]:
    """Check for free space on the disks to which the service writes."""
    seen: set[int] = set()
    for place in (settings.instance_path, settings.repositories_path):
        there = _find_existing_parent(place)
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield _check_free_space(there)


def _find_existing_parent(path: Path) -> Path:
    return path if path.exists() else _find_existing_parent(path.parent)


def _check_free_space(path: Path) -> CheckResult:
    files = os.statvfs(path)
    # Some file systems have no inode limit.
    if files.f_files and files.f_favail < _MIN_FREE_INODES:
        return failed(f"Only {files.f_favail} more files can be created on the disk of {path}.")
    usage = shutil.disk_usage(path)
    free, total = (f"{size / _GIB:.1f} GiB" for size in (usage.free, usage.total))
    sentence = f"{free} of {total} is free at {path}."
    if usage.free < _FAILURE_FREE_BYTES:
        return failed(sentence)
    return warning(sentence) if usage.free < _WARNING_FREE_BYTES else ok(sentence)


def check_backup_program(settings: Settings) -> Iterator[CheckResult]:
    """Check whether pg_dump is installed and new enough to back up the database server."""
    if settings.uses_sqlite:
        return
    with db.engine.connect() as connection:
        server = int((connection.dialect.server_version_info or (0,))[0])
    found = find_program_version("pg_dump")
    with convert_database_errors():
        is_shared = find_pooler(settings) is Pooler.OF_TRANSACTIONS
    if is_shared:
        yield warning("`gatebell backup` needs an address of Postgres itself, without the pooler.")
    elif found is None:
        yield warning("pg_dump is not in PATH. `gatebell backup` needs it in PATH or in --pg-dump.")
    elif found < server:
        yield warning(
            f"pg_dump {found} is older than Postgres {server}. `gatebell backup` needs a newer one."
        )
    else:
        yield ok(f"pg_dump {found} can back up Postgres {server}.")


def check_last_backup(settings: Settings) -> Iterator[CheckResult]:
    """Check that the last backup succeeded and is not too old."""
    del settings
    state, moment = get_backup_state(session=db.session()), get_current_time()
    if state.has_failed and state.failed_at:
        ago = format_duration(moment - state.failed_at)
        yield failed(f"The last backup failed {ago} ago: {state.reason}")
    if state.succeeded_at is None:
        yield warning("This database has never been backed up with `gatebell backup`.")
    elif state.is_overdue(moment):
        yield warning(
            f"The last backup was made {format_duration(moment - state.succeeded_at)} ago."
        )
    else:
        size = (state.bytes or 0) / _MIB
        ago = format_duration(moment - state.succeeded_at)
        yield ok(f"The last backup was made {ago} ago ({size:,.1f} MiB).")


def check_git(settings: Settings) -> Iterator[CheckResult]:
    """Check for a Git version that can serve repositories."""
    del settings
    problem = get_git().find_problem()
    if problem:
        yield warning(f"Git is {problem}, so this host cannot serve repositories.")
    else:
        yield ok("Git is installed.")
