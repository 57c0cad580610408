"""CLI commands for repositories (check, backup, restore), and the worker's packing."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.accounts.people import make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.database.postgres import Postgres
from tests.support.git.client import GitClient
from tests.support.service.live import LiveGatebell, NewService, running
from web.jobs.repositories import pack_repositories
from web.settings.environment import parse_settings

FILES = {"a.txt": b"a\n", "b.txt": b"b\n"}


@pytest.fixture(scope="module")
def own(new_service: NewService) -> Iterator[LiveGatebell]:
    with running(new_service("sqlite", only="web")) as live:
        yield live


@pytest.fixture
def git(own: LiveGatebell, tmp_path: Path) -> GitClient:
    owner = make_user(own, admin=True)
    return GitClient(
        gatebell=own, home=tmp_path / "home", token=make_token(own, owner, scopes="api").clear
    )


def repository_of(own: LiveGatebell, project: str) -> Path:
    return Path(str(own.cli("repositories", "list")[project]))


@pytest.mark.long
def test_a_backup_is_restored_into_another_directory(
    own: LiveGatebell, git: GitClient, tmp_path: Path
) -> None:
    project = make_project(own, make_user(own))
    work = git.new_work(FILES, branch="trunk")
    git.do("-C", str(work), "tag", "v1")
    assert git.push(work, project, "trunk", "v1").status == 0
    empty = make_project(own, make_user(own))
    git.clone(empty, into="empty")
    backup = tmp_path / "backup"
    written = own.printed("repositories", "backup", str(backup))
    assert written["empty"] >= 1
    path = repository_of(own, project)
    shutil.rmtree(path)
    outcome = own.cli("repositories", "restore", str(backup))
    assert {project, empty} <= set(outcome["restored"])
    copy = git.clone(project, into="restored")
    assert git.head(copy) == git.head(work)
    assert git.do("-C", str(copy), "symbolic-ref", "--short", "HEAD").strip() == "trunk"
    assert git.do("-C", str(copy), "tag").strip() == "v1"
    # A repository that has branches is not overwritten.
    again = own.cli("repositories", "restore", str(backup))
    assert project in again["kept"]
    refused = own.run_cli("repositories", "restore", str(tmp_path / "nothing"))
    assert refused.returncode == 1
    assert "does not contain a backup" in refused.stderr


@pytest.mark.long
def test_the_worker_writes_a_bitmap_for_a_large_repository(
    own: LiveGatebell, git: GitClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the bitmap, which saves memory during a clone; a pushed pack has no bitmap."""
    project = make_project(own, make_user(own))
    work = git.new_work({f"a/{each}": b"%d" % each for each in range(120)})
    assert git.push(work, project).status == 0
    packs = repository_of(own, project) / "objects" / "pack"
    settings = parse_settings(own.environment)
    pack_repositories(settings)
    assert list(packs.glob("*.bitmap")) == []  # The repository is small.
    monkeypatch.setattr("domain.git.maintenance._MIN_OBJECTS_FOR_BITMAP", 100)
    seen = set()
    for name in ("b", "c"):
        files = {f"{name}/{each}": f"{name} {each}".encode() for each in range(120)}
        git.commit(work, files, message=f"Add {name}")
        assert git.push(work, project).status == 0
        pack_repositories(settings)
        seen |= set(packs.glob("*.bitmap"))
    # The second bitmap replaces the first; without a push nothing changes.
    assert len(seen) == 2
    pack_repositories(settings)
    (bitmap,) = packs.glob("*.bitmap")
    assert bitmap in seen
    assert git.head(git.clone(project)) == git.head(work)
    assert own.cli("repositories", "check")["faults"] == {}


@pytest.mark.long
def test_a_lost_host_is_restored_from_backups_of_postgres_and_repositories(
    new_service: NewService, postgres: Postgres, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    with running(new_service("postgres", only="web")) as lost:
        owner = make_user(lost)
        project = make_project(lost, owner)
        token = make_token(lost, owner, scopes="api").clear
        git = GitClient(gatebell=lost, home=tmp_path / "home", token=token)
        work = git.new_work(FILES)
        kept = git.head(work)
        assert git.push(work, project).status == 0
        database = postgres.restored(lost.database_url, tmp_path / "dump.sql")
        assert lost.cli("repositories", "backup", str(backup)) == {"written": 1, "empty": 0}
        later = git.commit(work, {"c.txt": b"c\n"}, message="Lost, but for those who have it")
        assert git.push(work, project).status == 0
    found = LiveGatebell(instance_path=tmp_path / "found", database_url=database, only="web")
    with running(found):
        outcome = found.cli("repositories", "restore", str(backup))
        assert outcome == {"restored": [project], "kept": [], "missing": []}
        git = replace(git, gatebell=found)
        assert git.head(git.clone(project)) == kept
        # A user with commits that are newer than the backup can push them again.
        assert git.push(work, project).status == 0
        assert later in git.do("ls-remote", git.url(project))
        checked = found.cli("repositories", "check")
        assert (checked["faults"], checked["orphans"]) == ({}, [])


@pytest.mark.long
def test_a_check_finds_broken_objects_and_orphaned_repositories(
    own: LiveGatebell, git: GitClient
) -> None:
    whole, broken = (make_project(own, make_user(own)) for _ in range(2))
    work = git.new_work(FILES)
    for project in (whole, broken):
        assert git.push(work, project).status == 0
    path = repository_of(own, broken)
    victim = next(file for file in (path / "objects").glob("??/*") if file.is_file())
    victim.chmod(0o600)
    victim.write_bytes(b"broken")
    stray = path.parent / "999999-0123456789ab.git"
    shutil.copytree(path, stray)
    found = own.cli("repositories", "check")
    assert set(found["faults"]) == {broken}
    assert found["orphans"] == [str(stray)]
    assert found["checked"] >= 2
    assert own.cli("repositories", "remove-orphans") == {"removed": 1}
    assert not stray.exists()
    assert git.clone(whole, into="still-here").exists()
    shutil.rmtree(path)


@pytest.mark.long
def test_the_worker_packs_repositories_after_pushes(
    own: LiveGatebell, git: GitClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(own, make_user(own))
    work = git.new_work(FILES)
    for number in range(2):
        # Git stores a push with this number of files as a pack.
        files = {f"{number}/{each}": b"%d %d" % (number, each) for each in range(120)}
        git.commit(work, files, message=f"Add {number}")
        assert git.push(work, project).status == 0
    path = repository_of(own, project)
    assert len(list((path / "objects" / "pack").glob("*.pack"))) == 2
    few = ("-c", "gc.auto=1", "-c", "gc.autoPackLimit=1")
    monkeypatch.setattr("domain.git.maintenance._REPACK_OPTIONS", few)
    assert (path / "gatebell-pushed").exists()
    pack_repositories(parse_settings(own.environment))
    assert not (path / "gatebell-pushed").exists()
    assert len(list((path / "objects" / "pack").glob("*.pack"))) == 1
    assert git.head(git.clone(project)) == git.head(work)
