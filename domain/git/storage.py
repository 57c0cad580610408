"""Locations of repositories, and their creation and removal.

The path of a repository contains only constant properties of its project, so renaming a project
moves no files. The path includes the project's creation time, because SQLite can reuse the ID of
the last deleted project. The new project must not use the files of the deleted project.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from domain.core.randomness import generate_random_hex
from domain.git.errors import DiskNearlyFullError, GitFailedError
from domain.git.program import DEFAULT_BRANCH, Git

#: Name of the file that marks a repository for maintenance after a push.
PUSH_MARKER_FILE = "gatebell-pushed"
_NEW_SUFFIX, _REMOVED_SUFFIX = ".new", ".removed"


def get_repository_path(root: Path, project_id: int, created_at: datetime) -> Path:
    """Return the path of a project's repository, which might not exist yet."""
    moment = created_at.astimezone(UTC).isoformat(timespec="microseconds")
    digest = hashlib.sha256(f"{project_id} {moment}".encode()).hexdigest()
    return root / digest[:2] / f"{project_id}-{digest[2:14]}.git"


def ensure_repository(git: Git, path: Path) -> None:
    """Create an empty repository unless it exists.

    Concurrent calls create it only once.
    """
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{generate_random_hex(8)}{_NEW_SUFFIX}")
    git.run_command(
        aside,
        "init",
        "--quiet",
        "--bare",
        "--template=",
        f"--initial-branch={DEFAULT_BRANCH}",
        "--",
        str(aside),
    )
    try:
        aside.rename(path)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        if not path.exists():
            raise


def remove_repository(root: Path, project_id: int, created_at: datetime) -> bool:
    """Delete the repository of a deleted project, and return whether it existed.

    Call this after the deletion is committed. Running transfers lose their files and fail.
    """
    path = get_repository_path(root, project_id, created_at)
    aside = path.with_name(f"{path.name}.{generate_random_hex(8)}{_REMOVED_SUFFIX}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return False
    shutil.rmtree(aside, ignore_errors=True)
    return True


def list_repository_paths(root: Path) -> Iterator[Path]:
    """Yield the paths of all repositories in order."""
    yield from sorted(root.glob("??/*.git"))


def remove_interrupted_leftovers(root: Path, *, older_than: float) -> int:
    """Delete the directories that interrupted creations and removals left behind.

    Return the number of directories. `older_than` is a time in seconds since the epoch.
    """
    found = [*root.glob(f"??/*{_NEW_SUFFIX}"), *root.glob(f"??/*{_REMOVED_SUFFIX}")]
    old = [path for path in found if path.stat().st_mtime < older_than]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return len(old)


def check_free_space(root: Path, *, minimum: int) -> None:
    """Check that the disk has at least `minimum` free bytes.

    Raise DiskNearlyFullError otherwise.
    """
    while not root.exists():
        root = root.parent
    if shutil.disk_usage(root).free < minimum:
        message = "The server's disk is nearly full, so pushes are rejected for now."
        raise DiskNearlyFullError(f"{message} You can still clone and fetch.")


def mark_repository_pushed(git: Git, path: Path) -> None:
    """Mark a repository for maintenance after a push, and set its default branch.

    If the first push creates a branch other than `main`, that branch becomes the default branch.
    """
    with suppress(OSError):
        (path / PUSH_MARKER_FILE).touch(mode=0o600)
    with suppress(GitFailedError):
        _update_default_branch(git, path)


def read_default_branch(path: Path) -> bytes:
    """Return the name of the default branch, which may have no commits yet."""
    try:
        content = (path / "HEAD").read_bytes().strip()
    except OSError:
        return DEFAULT_BRANCH.encode()
    return content.removeprefix(b"ref: ").removeprefix(b"refs/heads/")


def has_repository_branches(path: Path) -> bool:
    """Return whether a repository, which might not exist, has any branches."""
    branches = path / "refs" / "heads"
    return (path / "packed-refs").exists() or next(branches.glob("*"), None) is not None


def _update_default_branch(git: Git, path: Path) -> None:
    current = read_default_branch(path)
    listed = git.run_command(path, "for-each-ref", "--format=%(refname)", "refs/heads/")
    branches = [line.removeprefix(b"refs/heads/") for line in listed.splitlines()]
    if not branches or current in branches:
        return
    usual = (b"main", b"master")
    chosen = next((name for name in usual if name in branches), branches[0])
    git.run_command(path, "symbolic-ref", "HEAD", os.fsencode(b"refs/heads/" + chosen))
