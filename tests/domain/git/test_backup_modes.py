"""File modes of backups of repositories."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from domain.git.maintenance import ProjectRepository, back_up_repositories
from domain.git.program import Git
from domain.git.storage import ensure_repository


def _commit(path: Path) -> None:
    """Store a commit without files in a repository."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    who = {f"GIT_{each}": "a@people.example" for each in names}

    def run(*arguments: str) -> str:
        return subprocess.run(
            [shutil.which("git") or "git", "-C", str(path), *arguments],
            env={**os.environ, **who},
            input="",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    tree = run("hash-object", "-w", "-t", "tree", "--stdin")
    run("update-ref", "refs/heads/main", run("commit-tree", "-m", "First", tree))


@pytest.mark.parametrize("umask", [0, 0o777])
def test_files_of_a_backup_are_private_with_any_umask(tmp_path: Path, umask: int) -> None:
    git = Git(program=shutil.which("git") or "git", root=tmp_path)
    path = tmp_path / "one.git"
    ensure_repository(git, path)
    _commit(path)
    kept = ProjectRepository(project_id=1, project_path="acme/shop", path=path)
    before = os.umask(umask)
    try:
        assert back_up_repositories(git, [kept], tmp_path / "backup") == (1, 0)
    finally:
        os.umask(before)
    files = {
        each.name: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "backup").iterdir()
    }
    assert files == {"1.bundle": 0o600, "repositories.json": 0o600}
