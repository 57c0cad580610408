"""An upgrade is taken back and made again with rows in the database, and nothing is lost."""

from collections.abc import Callable

import pytest
from flask import Flask

from domain.keyring import Keyring
from tests.support.service.commands import operate
from tests.support.service.live import close_app
from web.commands.backups.contents import read_contents
from web.database.engine import open_engine
from web.database.schema import UnknownRevisionError, move_to, newest_known_revision
from web.settings.reader import Settings

#: Far enough back for on-call schedules, pages, incidents and heartbeats to go and come again.
_FORMER = "0030"


def fill(app: Flask) -> dict[str, str]:
    """Make something of most kinds, and return the integration."""
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "projects", "create", "acme/shop")
    operate(app, "tokens", "create", "alice", "--name", "nightly", "--scopes", "api")
    operate(
        app, "applications", "create", "Board", "--owner", "alice", "--scopes", "api",
        "--redirect-uri", "https://board.example/cb",
    )  # fmt: skip
    endpoint = ("integrations", "create", "acme/shop", "--type", "http", "--name", "Nagios")
    return operate(app, *endpoint)


def number_of(app: Flask, endpoint: dict[str, str], title: str) -> int:
    answer = app.test_client().post(
        endpoint["url"].removeprefix("http://localhost"),
        json={"title": title},
        headers={"Authorization": f"Bearer {endpoint['key']}"},
    )
    assert answer.json is not None
    return int(answer.json[0]["iid"])


def rows(settings: Settings) -> dict[str, int]:
    """Count what is in each table."""
    engine = open_engine(settings)
    with engine.connect() as connection:
        found = read_contents(connection, Keyring(settings.secret_key)).rows
        connection.rollback()
    engine.dispose()
    return found


#: What a migration derives from other rows, and makes anew.
_DERIVED = ("alert_search", "incident_search", "alert_changes")


def test_rows_outlive_a_way_back_and_forth(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    app = make_app(settings)
    endpoint = fill(app)
    assert [number_of(app, endpoint, f"Disk {n}") for n in (1, 2)] == [1, 2]
    close_app(app)

    before = rows(settings)
    move_to(settings, _FORMER)
    back = rows(settings)
    move_to(settings, newest_known_revision())
    after = rows(settings)

    kept = {name for name in back if not name.startswith(_DERIVED)}
    assert len(kept) > 30
    assert {name: back[name] for name in kept} == {name: before[name] for name in kept}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    again = make_app(settings)
    assert number_of(again, endpoint, "Disk 2") == 2
    assert number_of(again, endpoint, "Disk 3") == 3
    assert operate(again, "audit", "verify")["intact"] is True


def test_a_migration_that_is_none_is_refused(settings: Settings) -> None:
    with pytest.raises(UnknownRevisionError, match="9999 is not a migration"):
        move_to(settings, "9999")
