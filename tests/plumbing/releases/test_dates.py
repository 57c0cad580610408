"""The dates that announcements name are the same for all processes and hosts."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import text

from domain.clock import system_clock
from domain.releases.version import Release
from tests.support.service.commands import operate
from web.database.engine import open_engine
from web.database.schema import migrate, move_to
from web.releases.dates import date_of, installed_at
from web.settings.reader import Settings

_MIGRATION = "0027"
_FIRST_ACCOUNT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def migrate_anew(settings: Settings) -> None:
    """Let the migration that stores the time run once more."""
    move_to(settings, f"{int(_MIGRATION) - 1:04}")
    migrate(settings)


def test_every_host_says_the_same_time_of_the_installation(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    found = []
    for app in (make_app(settings), make_app(settings)):
        with app.app_context():
            found += [installed_at(), installed_at()]
    assert len(set(found)) == 1
    assert timedelta() <= system_clock() - found[0] < timedelta(days=1)


def test_an_older_installation_exists_since_its_first_account(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    app = make_app(settings)
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    engine = open_engine(settings)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE users SET created_at = :moment"),
            {"moment": _FIRST_ACCOUNT.replace(tzinfo=None)},
        )
    engine.dispose()
    migrate_anew(settings)
    with make_app(settings).app_context():
        assert installed_at() == _FIRST_ACCOUNT


@pytest.mark.one_database("sqlite")
def test_a_release_has_the_date_that_was_entered(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    given = replace(settings, release_dates="17.0=2024-05-16")
    with make_app(given).app_context():
        assert date_of(Release(17, 0)) == date(2024, 5, 16)
        assert date_of(Release(18, 0)) is None
