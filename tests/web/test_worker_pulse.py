"""A worker leaves the time, and whoever looks at the queue reads it."""

from datetime import UTC, datetime, timedelta

from web.settings import Settings
from web.worker import look_at_queue, open_queue
from web.worker_pulse import add_pulse, last_pulse

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_before_the_first_worker_nobody_was_heard_of(settings: Settings) -> None:
    assert last_pulse(look_at_queue(settings)) is None


def test_a_worker_is_heard_of_at_once_and_then_again(settings: Settings) -> None:
    moments = iter((NOON, NOON + timedelta(minutes=1)))
    queue = open_queue(settings)
    add_pulse(queue, clock=lambda: next(moments))
    assert last_pulse(look_at_queue(settings)) == NOON
    (pulse,) = queue.read_periodic(NOON)
    queue.execute(pulse)
    assert last_pulse(look_at_queue(settings)) == NOON + timedelta(minutes=1)
    queue.storage.close()
