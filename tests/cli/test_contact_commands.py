"""Tests of commands for contacts of users and channels of projects."""

import pytest
from flask import Flask

from tests.support.service.commands import operate

pytestmark = pytest.mark.one_database("sqlite")
_TOKEN = "s3cr3t-token-of-alice"


@pytest.fixture
def crew(app: Flask) -> Flask:
    operate(app, "users", "create", "alice", "--email", "alice@example.org")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "projects", "create", "acme/shop", "--owner", "alice")
    return app


@pytest.mark.long
def test_no_command_prints_the_secret_of_an_address(crew: Flask) -> None:
    url = f"json://alice:{_TOKEN}@hooks.example/{_TOKEN}"
    made = operate(crew, "channels", "create", "acme/shop", "--type", "apprise", "--address", url)
    assert made["address"] == "json://hooks.example/…"
    assert _TOKEN not in str(operate(crew, "channels", "list", "acme/shop"))
    operate(crew, "channels", "delete", "acme/shop", str(made["id"]))


WRONG = (
    (("contacts", "create", "alice", "--type", "email", "--address", "nobody"), "email address"),
    (("contacts", "create", "zoe", "--type", "email", "--address", "a@b.example"), "zoe"),
    (("contacts", "create", "alice", "--type", "apprise", "--address", "x"), "cannot parse"),
    (("channels", "create", "acme/no", "--type", "email", "--address", "a@b.example"), "not found"),
    (("contacts", "delete", "alice", "7"), "not found"),
)


@pytest.mark.long
def test_invalid_contacts_are_rejected_with_a_reason(crew: Flask) -> None:
    for arguments, words in WRONG:
        done = crew.test_cli_runner().invoke(args=arguments)
        assert done.exit_code == 1, arguments
        assert words in crew.json.loads(done.stderr)["error"]


@pytest.mark.long
def test_an_address_can_be_added_only_once(crew: Flask) -> None:
    arguments = ("contacts", "create", "alice", "--type", "email", "--address", "a@b.example")
    operate(crew, *arguments)
    assert crew.test_cli_runner().invoke(args=arguments).exit_code == 1
