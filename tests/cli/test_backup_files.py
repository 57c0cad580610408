"""Tests of the instance files in a backup."""

from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from domain.accounts.passwords import get_initial_password_path
from tests.support.service.commands import operate
from web.instance_files import write_private_file
from web.services import get_settings

pytestmark = pytest.mark.one_database("sqlite")
_PASSWORD = "5vfz5a-d9mri0-sz6gkp"


def back_up(app: Flask, directory: Path, *options: str, key: str | None = None) -> Any:
    """Back up an instance whose first administrator has not changed the initial password."""
    with app.app_context():
        folder, own_key = get_settings().instance_path, get_settings().secret_key
    write_private_file(get_initial_password_path(folder), f"password: {_PASSWORD}\n")
    write_private_file(folder / "secret_key", key or own_key)
    return operate(app, "backup", str(directory), *options)


def contents(directory: Path) -> bytes:
    return b"\n".join(each.read_bytes() for each in directory.rglob("*") if each.is_file())


def test_a_backup_without_the_key_contains_no_secrets(app: Flask, tmp_path: Path) -> None:
    made = back_up(app, tmp_path / "backup", "--without-key")
    assert _PASSWORD.encode() not in contents(tmp_path / "backup")
    assert not (tmp_path / "backup" / "instance").exists()
    assert any("first_administrator.txt is not in the backup" in each for each in made["left_out"])


def test_a_backup_contains_no_secrets_if_the_key_is_stored_elsewhere(
    app: Flask, tmp_path: Path
) -> None:
    back_up(app, tmp_path / "backup", key="a key that this instance made and does not use")
    assert not (tmp_path / "backup" / "instance").exists()


def test_a_backup_with_the_key_contains_the_first_password(app: Flask, tmp_path: Path) -> None:
    back_up(app, tmp_path / "backup")
    folder = tmp_path / "backup" / "instance"
    assert {each.name for each in folder.iterdir()} == {"secret_key", "first_administrator.txt"}
