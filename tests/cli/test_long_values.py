"""Tests that values which are too long are rejected in a sentence, on each database."""

import pytest
from flask import Flask

from tests.support.service.commands import operate

LONG = "x" * 300
LONG_PART = "x" * 120
VERY_LONG = "x" * 3_000
TOO_LONG = (
    ("up to 100 letters", "users", "create", LONG_PART, "--email", "a@people.example"),
    ("not a valid email address", "users", "create", "new", "--email", f"{LONG}@people.example"),
    ("at most 100 characters", "users", "create", "new", "--email", "a@people.example",
     "--display-name", LONG),
    ("up to 100 letters", "groups", "create", LONG_PART),
    ("at most 255 characters", "groups", "create", "/".join(["x" * 90] * 3)),
    ("at most 255 characters", "groups", "create", "/".join(["x" * 90] * 30)),
    ("up to 100 letters", "projects", "create", f"acme/{LONG_PART}"),
    ("at most 255 characters", "projects", "create", "/".join(["x" * 90] * 30)),
    ("not found", "members", "add", VERY_LONG, "alice", "Guest"),
    ("not found", "members", "add", "acme", VERY_LONG, "Guest"),
    ("at most 255 characters", "applications", "create", LONG, "--owner", "alice", "--scopes",
     "api", "--redirect-uri", "https://a.example"),
    ("2000", "applications", "create", "x", "--owner", "alice", "--scopes", "api",
     "--redirect-uri", f"https://a.example/{VERY_LONG}"),
    ("at most 100 characters", "integrations", "create", "acme/shop", "--type", "http", "--name",
     LONG),
    ("at most 2000 characters", "integrations", "create", "acme/shop", "--type", "external",
     "--name", "x", "--api-url", f"https://a.example/{VERY_LONG}"),
    ("at most 100 characters", "tokens", "create", "alice", "--name", LONG, "--scopes", "api"),
    ("", "tokens", "create", "alice", "--name", "x", "--scopes", VERY_LONG),
    ("", "settings", "set", "instance_name", VERY_LONG),
    ("", "settings", "set", VERY_LONG, "x"),
    ("not found", "users", "lock", VERY_LONG),
)  # fmt: skip


@pytest.mark.long
def test_values_that_are_too_long_are_rejected_in_a_sentence(app: Flask) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    for sentence, *arguments in TOO_LONG:
        done = app.test_cli_runner().invoke(args=arguments)
        assert done.exit_code == 1, (arguments, done.output, done.exception)
        assert isinstance(done.exception, SystemExit), arguments
        said = app.json.loads(done.stderr)["error"]
        assert sentence in said, arguments
    # The errors leave no rows, and the connection stays usable.
    assert len(operate(app, "users", "list")["users"]) == 1


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_database_errors_about_long_values_are_reported_in_a_sentence(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.accounts.names.MAX_DISPLAY_NAME_LENGTH", 9_999)
    options = ("--email", "a@people.example", "--display-name", LONG)
    done = app.test_cli_runner().invoke(args=["users", "create", "new", *options])
    assert done.exit_code == 1
    assert "too long" in app.json.loads(done.stderr)["error"]
