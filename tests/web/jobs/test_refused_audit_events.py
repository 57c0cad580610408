"""Tests that a permanently rejected audit event does not block later events."""

from datetime import timedelta

import pytest

from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.delivery.audit_streams.types import AuditStream
from domain.delivery.outgoing.attempts import DeliveryAttempt
from domain.delivery.outgoing.destinations import DestinationState
from tests.support.database.audit_streams import Streams
from tests.support.service.message_receiver import Received, Receiver


def deliver_for(streams: Streams, stream: AuditStream, length: timedelta) -> AuditStream:
    """Deliver all due entries within a period, and return the state after it."""
    end = streams.now + length
    while streams.now < end:
        streams.deliver_events()
        state = streams.read_stream_state(stream)
        due = state.next_try_at or (streams.now if state.backlog else end)
        streams.now = min(max(due, streams.now + timedelta(seconds=1)), end)
    return streams.read_stream_state(stream)


@pytest.mark.long
@pytest.mark.parametrize("status", [400, 500])
def test_a_permanently_rejected_event_delays_later_ones_only_for_minutes(
    streams: Streams, receiver: Receiver, status: int
) -> None:
    stream = streams.create_destination(receiver.url).destination
    first, poison, *later = streams.write_events(5)
    refusals: list[str] = []

    def answer(request: Received) -> tuple[int, dict[str, str]]:
        if request.subject != poison:
            return 204, {}
        refusals.append(request.message_id)
        return status, {}

    receiver.answer = answer
    state = deliver_for(streams, stream, timedelta(minutes=15))

    assert receiver.subjects == [first, *later]
    assert (state.backlog, state.set_aside, state.dropped) == (0, 1, 0)
    # Each later event shows that the receiver works, and the rejected event is retried once more.
    assert len(refusals) == 10 + len(later)
    # No further attempt follows, for any number of later events.
    written = streams.write_events(20)
    state = deliver_for(streams, stream, timedelta(minutes=2))
    assert receiver.subjects == [first, *later, *written]
    assert len(refusals) == 20
    assert (state.state, state.set_aside) == (DestinationState.ACTIVE, 1)

    receiver.answer = lambda _request: (204, {})
    with streams.open_session() as session:
        AUDIT_STREAM_KIND.resume_destination(stream.id, session=session)
    state = deliver_for(streams, stream, timedelta(seconds=5))
    assert receiver.subjects[-1] == poison
    assert (state.set_aside, streams.count_waiting_events()) == (0, 0)


@pytest.mark.long
def test_delivery_waits_for_a_receiver_that_rejects_everything(
    streams: Streams, receiver: Receiver
) -> None:
    stream = streams.create_destination(receiver.url).destination
    written = streams.write_events(6)
    receiver.answer = lambda _request: (400, {})
    state = deliver_for(streams, stream, timedelta(hours=6))
    assert (state.set_aside, state.backlog) == (3, 3)

    receiver.answer = lambda _request: (204, {})
    state = deliver_for(streams, stream, timedelta(hours=4))
    # The stream recovers without intervention, and entries that were set aside are sent as well.
    assert sorted(receiver.subjects) == sorted(written)
    assert (state.state, state.set_aside) == (DestinationState.ACTIVE, 0)


@pytest.mark.parametrize("status", [404, 503])
def test_a_failure_of_the_whole_receiver_sets_nothing_aside(
    streams: Streams, receiver: Receiver, status: int
) -> None:
    stream = streams.create_destination(receiver.url).destination
    streams.write_events(2)
    receiver.answer = lambda _request: (status, {})
    state = deliver_for(streams, stream, timedelta(hours=2))
    assert (state.set_aside, state.backlog) == (0, 2)


def test_only_some_statuses_reject_the_single_event() -> None:
    statuses = (400, 401, 404, 408, 422, 429, 500, 502, 503)
    refused = [
        each for each in statuses if DeliveryAttempt(problem="", status=each).is_message_rejected
    ]
    assert refused == [400, 422, 500]
