"""Commands that check, back up and restore Git repositories."""

from pathlib import Path
from typing import Any

import click
from flask.cli import AppGroup

from domain.core.database.locks import commit_to_release_locks
from domain.git import maintenance
from domain.git.errors import GitUnavailableError
from domain.git.maintenance import ProjectRepository
from domain.git.program import Git
from web.commands.execution import run_in_transaction
from web.extensions import db
from web.services import get_git

_DIRECTORY_TYPE = click.Path(file_okay=False, path_type=Path)

repositories = AppGroup("repositories", help="Check, back up and restore Git repositories.")


def _load_git_and_repositories() -> tuple[Git, tuple[ProjectRepository, ...]]:
    """Return the Git installation and all repositories, and end the transaction.

    Raise GitUnavailableError if Git cannot be used.
    """
    own = get_git()
    if problem := own.find_problem():
        raise GitUnavailableError(f"Git is {problem}.")
    kept = maintenance.list_repositories(own.root, session=db.session())
    commit_to_release_locks(db.session())
    return own, kept


@repositories.command("list")
@run_in_transaction
def list_command() -> dict[str, Any]:
    """Print the directory of each repository."""
    _own, kept = _load_git_and_repositories()
    return {each.project_path: str(each.path) for each in kept if each.exists}


@repositories.command("check")
@run_in_transaction
def check_command() -> dict[str, Any]:
    """Check every object in every repository, and list directories that belong to no project."""
    own, kept = _load_git_and_repositories()
    there = [each for each in kept if each.exists]
    faults = {each.project_path: maintenance.find_repository_problem(own, each) for each in there}
    return {
        "checked": len(there),
        "faults": {path: fault for path, fault in faults.items() if fault},
        "orphans": [str(path) for path in maintenance.find_orphaned_repositories(own, kept)],
    }


@repositories.command("backup")
@click.argument("directory", type=_DIRECTORY_TYPE)
@run_in_transaction
def backup_command(*, directory: Path) -> dict[str, Any]:
    """Write a bundle of each repository to DIRECTORY while the service is running."""
    own, kept = _load_git_and_repositories()
    written, empty = maintenance.back_up_repositories(own, kept, directory)
    return {"written": written, "empty": empty}


@repositories.command("restore")
@click.argument("directory", type=_DIRECTORY_TYPE)
@run_in_transaction
def restore_command(*, directory: Path) -> dict[str, Any]:
    """Restore repositories from a backup in DIRECTORY.

    Repositories that already have branches stay unchanged.
    """
    own, kept = _load_git_and_repositories()
    return dict(maintenance.restore_repositories(own, kept, directory))


@repositories.command("remove-orphans")
@run_in_transaction
def remove_orphans_command() -> dict[str, Any]:
    """Remove the repositories that belong to no project."""
    own, kept = _load_git_and_repositories()
    return {"removed": maintenance.remove_orphaned_repositories(own, kept)}
