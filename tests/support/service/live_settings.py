"""Settings of a service that runs already, changed for a while.

A service of one's own takes seconds of a processor to start; this takes two of waiting.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep

from sqlalchemy import delete, insert, select

from models import InstanceSetting
from tests.support.accounts.people import database_of, now
from tests.support.service.live import LiveGatebell

#: Every process has a setting within a second.
_PICKED_UP = 1.1


@contextmanager
def changed_settings(gatebell: LiveGatebell, **values: str) -> Iterator[LiveGatebell]:
    """Change settings as `gatebell settings set` does; afterwards they are as they were."""
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
    """Wait until every process has what was stored before."""
    sleep(_PICKED_UP)
