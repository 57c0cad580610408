"""Tests of commands that rename, transfer and delete groups and projects."""

from datetime import UTC, datetime

import pytest
from flask import Flask
from sqlalchemy import insert

from models import Group
from tests.support.service.commands import operate
from web.extensions import db

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.long
def test_groups_and_projects_can_be_transferred_and_deleted(app: Flask) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@example.com")
    for path in ("acme", "acme/eu", "corp"):
        operate(app, "groups", "create", path, "--owner", "alice")
    operate(app, "projects", "create", "acme/eu/shop")
    changed = operate(app, "groups", "change", "acme", "--path", "acme-inc", "--name", "Acme")
    assert (changed["full_path"], changed["name"]) == ("acme-inc", "Acme")
    # The former path still works.
    changed = operate(app, "projects", "change", "acme/eu/shop", "--path", "store")
    assert changed["path_with_namespace"] == "acme-inc/eu/store"
    moved = operate(app, "projects", "transfer", "acme-inc/eu/store", "corp")
    assert moved["path_with_namespace"] == "corp/store"
    former = ["acme-inc/eu/store", "acme-inc/eu/shop", "acme/eu/shop"]
    assert operate(app, "projects", "former-paths", "corp/store")["former_paths"] == former
    assert operate(app, "projects", "show", "acme/eu/shop") == moved
    assert operate(app, "groups", "show", "acme")["full_path"] == "acme-inc"
    listed = operate(app, "groups", "list", "--search", "inc")
    assert [each["full_path"] for each in listed["groups"]] == ["acme-inc", "acme-inc/eu"]
    (project,) = operate(app, "projects", "list", "--group", "corp")["projects"]
    assert (project["path_with_namespace"], project["archived"]) == ("corp/store", False)
    (member,) = operate(app, "members", "list", "corp/store")["members"]
    assert (member["username"], member["access_level"]) == ("alice", 50)
    assert operate(app, "members", "list-direct", "corp/store")["total"] == 0
    changed = operate(app, "users", "change", "alice", "--time-zone", "europe/berlin")
    assert changed["time_zone"] == "Europe/Berlin"
    assert operate(app, "users", "show", "alice")["time_zone"] == "Europe/Berlin"
    operate(app, "projects", "release-path", "corp/store", "ACME-inc/eu/shop")
    made = operate(app, "projects", "create", "acme-inc/eu/shop")
    assert made["path_with_namespace"] == "acme-inc/eu/shop"
    assert operate(app, "groups", "transfer", "acme-inc/eu")["full_path"] == "eu"
    assert operate(app, "projects", "archive", "eu/shop")["archived"] is True
    assert operate(app, "projects", "unarchive", "eu/shop")["archived"] is False
    refused = app.test_cli_runner().invoke(args=["groups", "delete", "eu"])
    assert refused.exit_code == 1
    assert "eu contains 1 project, 1 direct member. Use `--yes` to delete it." in refused.stderr
    assert operate(app, "groups", "delete", "eu", "--yes")["contents"]["projects"] == 1
    gone = app.test_cli_runner().invoke(args=["groups", "delete", "eu", "--yes"])
    assert "Group not found" in gone.stderr


def test_a_group_without_its_own_owner_cannot_become_a_top_level_group(app: Flask) -> None:
    operate(app, "groups", "create", "acme")
    operate(app, "groups", "create", "acme/eu")
    refused = app.test_cli_runner().invoke(args=["groups", "transfer", "acme/eu"])
    assert refused.exit_code == 1
    assert "would have no owner" in refused.stderr


def test_an_archived_project_can_be_deleted_but_not_changed(app: Flask) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@example.com")
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    operate(app, "projects", "archive", "acme/shop")
    for arguments in (
        ("projects", "change", "acme/shop", "--name", "Store"),
        ("projects", "change", "acme/shop", "--path", "store"),
        ("members", "add", "acme/shop", "alice", "developer"),
    ):
        refused = app.test_cli_runner().invoke(args=arguments)
        assert (refused.exit_code, "is archived" in refused.stderr) == (1, True), arguments
    operate(app, "projects", "delete", "acme/shop", "--yes")


@pytest.mark.long
def test_a_long_list_is_paginated(app: Flask) -> None:
    with app.app_context():
        rows = [{"name": f"g{number}", "path": f"g{number}"} for number in range(1_003)]
        db.session.execute(
            insert(Group),
            [{**row, "path_key": row["path"], "created_at": datetime.now(UTC)} for row in rows],
        )
        db.session.commit()
    first = operate(app, "groups", "list")
    second = operate(app, "groups", "list", "--page", "2")
    assert (len(first["groups"]), len(second["groups"]), first["total"]) == (1_000, 3, 1_003)
    found = {each["id"] for each in (*first["groups"], *second["groups"])}
    assert len(found) == 1_003


def test_a_personal_namespace_follows_its_account(app: Flask) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@example.com")
    runner = app.test_cli_runner()
    assert "not found" in runner.invoke(args=["projects", "create", "alice/shop"]).stderr
    made = operate(app, "projects", "create", "alice/shop", "--owner", "alice")
    assert (made["path_with_namespace"], made["namespace"]["kind"]) == ("alice/shop", "user")
    for command in (["delete", "alice", "--yes"], ["change", "alice", "--path", "bob"]):
        refused = runner.invoke(args=["groups", *command])
        assert refused.exit_code == 1
        assert "alice is a personal namespace" in refused.stderr
    changed = operate(app, "users", "change", "alice", "--username", "bob")
    assert changed["username"] == "bob"
    assert operate(app, "projects", "show", "alice/shop")["path_with_namespace"] == "bob/shop"


@pytest.mark.long
def test_a_project_can_be_shared_with_a_group_by_its_path(app: Flask) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@example.com")
    operate(app, "users", "create", "bob", "--email", "bob@example.com")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "groups", "create", "ops", "--owner", "bob")
    operate(app, "projects", "create", "acme/shop")
    share = operate(app, "projects", "share", "acme/shop", "ops", "developer")
    assert (share["group_access"], share["expires_at"]) == (30, None)
    listed = operate(app, "members", "list", "acme/shop")["members"]
    roles = [(each["username"], each["access_level"]) for each in listed]
    assert sorted(roles) == [("alice", 50), ("bob", 30)]
    operate(app, "projects", "unshare", "acme/shop", str(share["group_id"]))
    assert operate(app, "members", "list", "acme/shop")["total"] == 1
