"""Tests that pruning uses short transactions, since SQLite blocks writers during each of them."""

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Connection, Engine, event

from web.jobs.retention import prune_database
from web.services import get_settings

pytestmark = pytest.mark.one_database("sqlite")

#: Maximum number of statements to prune one table; all tables together need more than sixty.
_MOST_STATEMENTS = 8


def test_pruning_lets_others_write_after_each_table(app: Flask) -> None:
    transactions: list[int] = []

    def begin(_connection: Connection) -> None:
        transactions.append(0)

    def ask(*_about: Any) -> None:
        transactions[-1] += 1

    heard = {"begin": begin, "before_cursor_execute": ask}
    with app.app_context():
        for name, hear in heard.items():
            event.listen(Engine, name, hear)
        try:
            prune_database(get_settings())
        finally:
            for name, hear in heard.items():
                event.remove(Engine, name, hear)
    assert sum(transactions) > _MOST_STATEMENTS, "nothing was asked"
    assert max(transactions) <= _MOST_STATEMENTS, transactions
