"""Temporary changes of a running service's settings.

A separate service takes seconds of processor time to start; a change takes two seconds of waiting.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep

from sqlalchemy import delete, insert, select

from models import InstanceSetting
from tests.support.accounts.people import database_of, now
from tests.support.service.live import LiveGatebell

#: Seconds after which every process uses a changed setting.
_PICKED_UP = 1.1


@contextmanager
def changed_settings(gatebell: LiveGatebell, **values: str) -> Iterator[LiveGatebell]:
    """Change settings as `gatebell settings set` does, and restore them afterwards."""
    before = _stored(gatebell)
    _store(gatebell, before | values)
    try:
        yield gatebell
    finally:
        _store(gatebell, before)


def _stored(gatebell: LiveGatebell) -> dict[str, str]:
    with database_of(gatebell) as session:
        columns = select(InstanceSetting.name, InstanceSetting.value)
        return {row.name: row.value for row in session.execute(columns)}


def _store(gatebell: LiveGatebell, values: dict[str, str]) -> None:
    rows = [{"name": name, "value": value, "updated_at": now()} for name, value in values.items()]
    with database_of(gatebell) as session:
        session.execute(delete(InstanceSetting))
        if rows:
            session.execute(insert(InstanceSetting), rows)
    let_every_process_read()


def let_every_process_read() -> None:
    """Wait until every process has read the stored settings."""
    sleep(_PICKED_UP)
