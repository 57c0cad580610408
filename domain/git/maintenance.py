"""Maintenance of repositories: packing, checks, backups and restoration."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.errors import InvalidError
from domain.git.errors import GitFailedError
from domain.git.program import Git
from domain.git.storage import (
    PUSH_MARKER_FILE,
    ensure_repository,
    get_repository_path,
    list_repository_paths,
    read_default_branch,
)
from models import Project

MANIFEST_FILE = "repositories.json"
#: Permissions of backup files.
_PRIVATE_FILE_MODE = 0o600
#: Timeout for one repository in seconds. Packing and checking read the whole repository.
_REPOSITORY_TIMEOUT_SECONDS = 6 * 3600.0
#: Git options with the numbers of loose objects and packs that trigger repacking.
_REPACK_OPTIONS = ("-c", "gc.auto=2000", "-c", "gc.autoPackLimit=20")
#: Number of packed objects above which a bitmap is written. Without a bitmap, a clone takes about
#: 300 bytes of memory per object.
_MIN_OBJECTS_FOR_BITMAP = 20_000
_PACKED_COUNT_PATTERN = re.compile(rb"^in-pack: (\d+)$", re.MULTILINE)
#: Git options for restoring backups. A backup is a local file with objects that were checked when
#: they were pushed.
_RESTORE_OPTIONS = (
    *("-c", "protocol.file.allow=always"),
    *("-c", "transfer.fsckObjects=false", "-c", "fetch.fsckObjects=false"),
)


@dataclass(frozen=True, kw_only=True)
class ProjectRepository:
    """The repository of a project, which might not exist yet."""

    project_id: int
    project_path: str
    path: Path

    @property
    def exists(self) -> bool:
        """True if the repository has been created."""
        return self.path.exists()


def list_repositories(root: Path, *, session: Session) -> tuple[ProjectRepository, ...]:
    """Return the repositories of all projects, including deleted projects."""
    rows = session.execute(
        select(Project.id, Project.path, Project.created_at).order_by(Project.id)
    )
    return tuple(
        ProjectRepository(
            project_id=number, project_path=path, path=get_repository_path(root, number, created_at)
        )
        for number, path, created_at in rows
    )


def pack_pushed_repositories(git: Git) -> int:
    """Pack the repositories that received a push since the last run.

    Return the number of packed repositories. If several hosts share a directory, each repository is
    packed by only one of the hosts.
    """
    packed = 0
    for path in list_repository_paths(git.root):
        if _claim_repository(path):
            with suppress(GitFailedError):
                git.run_command(
                    path,
                    *_REPACK_OPTIONS,
                    "gc",
                    "--auto",
                    "--quiet",
                    seconds=_REPOSITORY_TIMEOUT_SECONDS,
                )
                packed += 1
                _write_bitmap(git, path)
    return packed


def _write_bitmap(git: Git, path: Path) -> None:
    """Write a bitmap of the objects in each branch, unless the latest bitmap covers all packs.

    A clone then reads the bitmap instead of the whole history (gitformat-bitmap). The packs are not
    changed. This requires Git 2.34. Raise GitFailedError if Git fails.
    """
    packs = path / "objects" / "pack"
    if _find_newest_mtime(packs, "*.bitmap") >= _find_newest_mtime(packs, "*.pack"):
        return
    found = _PACKED_COUNT_PATTERN.search(git.run_command(path, "count-objects", "-v"))
    if found is not None and int(found[1]) >= _MIN_OBJECTS_FOR_BITMAP:
        git.run_command(
            path,
            "multi-pack-index",
            "write",
            "--bitmap",
            "--no-progress",
            seconds=_REPOSITORY_TIMEOUT_SECONDS,
        )


def _find_newest_mtime(directory: Path, pattern: str) -> int:
    """Return the latest modification time of the matching files in nanoseconds.

    Return 0 if no file matches.
    """
    return max((file.stat().st_mtime_ns for file in directory.glob(pattern)), default=0)


def _claim_repository(path: Path) -> bool:
    try:
        (path / PUSH_MARKER_FILE).unlink()
    except OSError:
        return False
    return True


def find_repository_problem(git: Git, repository: ProjectRepository) -> str | None:
    """Check every object in a repository, and return the problem, if any."""
    options = ("--full", "--no-dangling", "--no-progress", "--no-reflogs")
    child = git.start_command(
        repository.path, "fsck", *options, seconds=_REPOSITORY_TIMEOUT_SECONDS
    )
    try:
        child.close_stdin()
        said = bytearray()
        while piece := child.read_output():
            said += piece
        status = child.wait_for_exit(_REPOSITORY_TIMEOUT_SECONDS)
    finally:
        child.terminate()
    words = f"{said.decode(errors='replace')}\n{child.read_errors()}".strip()
    return None if status == 0 else words[:500] or f"git fsck failed with exit status {status}"


def find_orphaned_repositories(
    git: Git, repositories: Iterable[ProjectRepository]
) -> tuple[Path, ...]:
    """Return the repositories on the disk that belong to no project."""
    known = {each.path for each in repositories}
    return tuple(path for path in list_repository_paths(git.root) if path not in known)


def remove_orphaned_repositories(git: Git, repositories: Iterable[ProjectRepository]) -> int:
    """Delete the repositories that belong to no project.

    Return the number of deleted repositories. Raise InvalidError if there are no projects at all,
    which indicates a wrong database.
    """
    known = tuple(repositories)
    if not known:
        message = "The database has no projects, so no repositories were removed."
        raise InvalidError(f"{message} Check that DATABASE_URL is correct.")
    found = find_orphaned_repositories(git, known)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return len(found)


def back_up_repositories(
    git: Git, repositories: Iterable[ProjectRepository], directory: Path
) -> tuple[int, int]:
    """Write a bundle of each repository, and a manifest.

    Return the number of bundles and the number of empty repositories. A bundle is a consistent
    snapshot of all branches and tags, even during pushes. Raise GitFailedError if a bundle cannot
    be written.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    entries = [_back_up_repository(git, each, directory) for each in repositories if each.exists]
    aside = directory / f"{MANIFEST_FILE}.new"
    aside.touch(mode=_PRIVATE_FILE_MODE)
    aside.chmod(_PRIVATE_FILE_MODE)
    aside.write_text(json.dumps({"repositories": entries}, indent=1), encoding="utf-8")
    aside.rename(directory / MANIFEST_FILE)
    empty = sum(entry["file"] is None for entry in entries)
    return len(entries) - empty, empty


def _back_up_repository(git: Git, repository: ProjectRepository, directory: Path) -> dict[str, Any]:
    has_refs = bool(git.run_command(repository.path, "for-each-ref", "--count=1"))
    name = f"{repository.project_id}.bundle" if has_refs else None
    if name is not None:
        aside = directory / f"{name}.new"
        git.run_command(
            repository.path,
            "bundle",
            "create",
            "--quiet",
            str(aside.absolute()),
            "--all",
            seconds=_REPOSITORY_TIMEOUT_SECONDS,
        )
        # Git creates the file with the umask of this process.
        aside.chmod(_PRIVATE_FILE_MODE)
        aside.rename(directory / name)
    branch = read_default_branch(repository.path).decode("utf-8", "surrogateescape")
    return {"project": repository.project_path, "file": name, "default_branch": branch}


def restore_repositories(
    git: Git, repositories: Iterable[ProjectRepository], directory: Path
) -> dict[str, list[str]]:
    """Restore the repositories in a backup to the projects with the same paths.

    Return project paths under `restored`, `kept` (the repository already has branches) and
    `missing` (there is no such project). Raise InvalidError for a directory without a backup.
    """
    by_path = {each.project_path: each for each in repositories}
    outcome: dict[str, list[str]] = {"restored": [], "kept": [], "missing": []}
    for entry in _read_manifest(directory):
        found = by_path.get(entry["project"])
        word = "missing" if found is None else _restore_repository(git, found, entry, directory)
        outcome[word].append(entry["project"])
    return outcome


def _read_manifest(directory: Path) -> Iterator[dict[str, Any]]:
    try:
        read = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))
        yield from read["repositories"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{directory} does not contain a backup: {MANIFEST_FILE} cannot be read."
        raise InvalidError(message) from error


def _restore_repository(
    git: Git, repository: ProjectRepository, entry: dict[str, Any], directory: Path
) -> str:
    ensure_repository(git, repository.path)
    if git.run_command(repository.path, "for-each-ref", "--count=1"):
        return "kept"
    if entry["file"] is not None:
        file = str((directory / Path(entry["file"]).name).absolute())
        options = ("--quiet", "--no-write-fetch-head", "--update-head-ok")
        git.run_command(
            repository.path,
            *_RESTORE_OPTIONS,
            "fetch",
            *options,
            file,
            "+refs/*:refs/*",
            seconds=_REPOSITORY_TIMEOUT_SECONDS,
        )
    branch = entry["default_branch"].encode("utf-8", "surrogateescape")
    git.run_command(repository.path, "symbolic-ref", "HEAD", b"refs/heads/" + branch)
    return "restored"
