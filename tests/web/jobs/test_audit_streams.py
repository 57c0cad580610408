"""Tests that audit events reach each destination once and in order, in spite of failures."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from threading import Event as Signal
from threading import Thread

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from domain.audit.events import EventKind
from domain.audit.log import get_event
from domain.core.errors import ConflictError, InvalidError
from domain.delivery.audit_streams.streams import (
    AUDIT_STREAM_KIND,
    MAX_STREAMS,
    delete_orphaned_events,
    drop_old_stream_events,
)
from domain.delivery.outgoing.attempts import DeliveryAttempt, RetryPolicy
from domain.delivery.outgoing.destinations import DestinationDetails, DestinationState
from tests.support.database.audit_streams import Streams
from tests.support.service.message_receiver import Received, Receiver, running_receiver

DOWN = "http://127.0.0.1:1/"


@pytest.mark.long
def test_events_arrive_in_order_signed_and_with_the_content_of_the_api(
    streams: Streams, receiver: Receiver
) -> None:
    created = streams.create_destination(receiver.url)
    written = streams.write_events(3)
    assert streams.deliver_events() == 1

    assert receiver.subjects == written
    assert len({each.message_id for each in receiver.received}) == 3
    first = receiver.received[0]
    body = first.verified_by(created.secret)
    assert first.headers["content-type"] == "application/json"
    assert (body["type"], body["timestamp"]) == ("token.revoked", body["data"]["created_at"])
    with streams.open_session() as session:
        assert (
            body["data"] == get_event(body["data"]["id"], session=session).convert_to_json_value()
        )
    with pytest.raises(WebhookVerificationError):
        Received(first.path, first.headers, first.body + b" ").verified_by(created.secret)
    state = streams.read_stream_state(created.destination)
    assert (state.state, state.backlog, streams.count_waiting_events()) == (
        DestinationState.ACTIVE,
        0,
        0,
    )
    assert state.last_delivered_at == streams.now


@pytest.mark.long
def test_an_event_that_is_rolled_back_is_never_sent(streams: Streams, receiver: Receiver) -> None:
    streams.create_destination(receiver.url)
    with streams.open_session() as session:
        with session.begin_nested() as savepoint:
            streams.write_event(session)
            savepoint.rollback()
        kept = streams.write_event(session)
    streams.deliver_events()
    assert receiver.subjects == [kept]


def test_without_a_destination_nothing_is_queued(streams: Streams) -> None:
    streams.write_events()
    streams.write_events(kind=EventKind.PUBLIC_REPOSITORY_DOWNLOADED)
    assert streams.count_waiting_events() == 0
    assert streams.deliver_events() == 0


def test_a_streamed_event_is_sent_and_never_stored(streams: Streams, receiver: Receiver) -> None:
    streams.create_destination(receiver.url)
    stored = streams.write_events()
    streamed = streams.write_events(kind=EventKind.PUBLIC_REPOSITORY_DOWNLOADED)
    streams.deliver_events()
    assert receiver.subjects == stored + streamed
    last = receiver.received[-1]
    assert last.type == "public_repository_download_operation"
    assert last.message_id == f"evt_{last.event['data']['id']}"


@pytest.mark.long
def test_a_destination_that_is_down_for_an_hour_gets_everything_once_and_in_order(
    streams: Streams, receiver: Receiver
) -> None:
    is_down = True
    receiver.answer = lambda _request: (503, {}) if is_down else (204, {})
    stream = streams.create_destination(receiver.url).destination
    written = streams.write_events(2)
    began, attempts = streams.now, []
    while streams.now - began < timedelta(hours=1):
        assert streams.deliver_events() == 1
        attempts.append(streams.now)
        # No attempt is made before it is due.
        assert streams.deliver_events() == 0
        written += streams.write_events()
        next_try_at = streams.read_stream_state(stream).next_try_at
        assert next_try_at is not None
        streams.now = next_try_at
    pauses = [after - before for before, after in pairwise(attempts)]
    assert pauses[0] <= timedelta(seconds=30)
    assert max(pauses[:10]) <= timedelta(minutes=2)
    assert sorted(pauses) == pauses
    state = streams.read_stream_state(stream)
    assert state.state is DestinationState.RETRYING
    assert (state.failing_since, state.failures) == (began, len(attempts))
    assert state.last_error == "the server returned 503 Service Unavailable"

    is_down = False
    streams.deliver_events()
    assert receiver.subjects == written
    state = streams.read_stream_state(stream)
    assert (state.state, state.failures, state.backlog) == (DestinationState.ACTIVE, 0, 0)


@pytest.mark.long
def test_a_repeated_attempt_has_the_id_of_the_first(streams: Streams, receiver: Receiver) -> None:
    seen: list[Received] = []

    def answer(request: Received) -> tuple[int, dict[str, str]]:
        seen.append(request)
        return (500 if len(seen) == 1 else 200), {}

    receiver.answer = answer
    secret = streams.create_destination(receiver.url).secret
    streams.write_events()
    streams.deliver_events()
    streams.advance_time(seconds=30)
    streams.deliver_events()
    assert len({each.message_id for each in seen}) == 1
    # Each attempt is signed with its own time, because receivers reject old times.
    assert len({each.headers["webhook-timestamp"] for each in seen}) == 2
    assert [each.verified_by(secret)["type"] for each in seen] == ["token.revoked"] * 2


def test_an_unresponsive_destination_does_not_delay_others(
    streams: Streams, receiver: Receiver
) -> None:
    over = Signal()

    def stall(_request: Received) -> tuple[int, dict[str, str]]:
        over.wait(60)
        return 204, {}

    with running_receiver(Receiver(answer=stall)) as silent:
        streams.create_destination(silent.url)
        streams.create_destination(receiver.url)
        written = streams.write_events(3)
        with streams.create_worker() as worker:
            working = Thread(target=worker.process_all_due_work)
            working.start()
            receiver.wait_for(3, "token.revoked")
            assert silent.received == []
            over.set()
            working.join()
    assert receiver.subjects == silent.subjects == written


@pytest.mark.long
def test_several_workers_send_nothing_twice(streams: Streams, receiver: Receiver) -> None:
    streams.create_destination(receiver.url)
    written = streams.write_events(20)
    with streams.create_worker() as one, streams.create_worker() as other:
        workers = [Thread(target=each.process_all_due_work) for each in (one, other)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    assert receiver.subjects == written


@pytest.mark.one_database("postgres")  # SQLite has one writer at a time
def test_only_one_of_two_simultaneous_workers_gets_a_claim(
    streams: Streams, receiver: Receiver
) -> None:
    streams.create_destination(receiver.url)
    streams.write_events()

    def claimed() -> int:
        with streams.open_session() as session:
            return len(
                AUDIT_STREAM_KIND.claim_due_destinations(
                    maximum=64, session=session, now=streams.now
                )
            )

    with ThreadPoolExecutor(1) as other, streams.open_session() as session:
        found = AUDIT_STREAM_KIND.claim_due_destinations(
            maximum=64, session=session, now=streams.now
        )
        assert len(found) == 1
        # A destination that another worker has locked is skipped, and does not delay the others.
        assert other.submit(claimed).result(timeout=30) == 0
        session.commit()
        assert claimed() == 0


@pytest.mark.one_database("postgres")  # SQLite has one writer at a time
def test_an_event_that_is_committed_late_is_not_skipped(
    streams: Streams, receiver: Receiver
) -> None:
    streams.create_destination(receiver.url)
    with streams.open_session() as slow:
        late = streams.write_event(slow)
        early = streams.write_events(2)
        streams.deliver_events()
        assert receiver.subjects == early
    streams.deliver_events()
    assert receiver.subjects == [*early, late]


def test_a_crash_before_the_delivery_is_recorded_resends_the_event_with_its_id(
    streams: Streams, receiver: Receiver
) -> None:
    streams.create_destination(receiver.url)
    streams.write_events(2)
    # State after a worker was killed between the response and the record of the delivery.
    with streams.open_session() as session:
        (claim,) = AUDIT_STREAM_KIND.claim_due_destinations(
            maximum=64, session=session, now=streams.now
        )
    with streams.open_session() as session:
        delivery = AUDIT_STREAM_KIND.take_next_delivery(
            claim, session=session, keyring=streams.keyring, now=streams.now
        )
    assert delivery is not None
    assert streams.deliver_events() == 0
    streams.advance_time(seconds=30)
    assert streams.deliver_events() == 1
    assert receiver.received[0].message_id == delivery.message.id
    assert len(receiver.received) == 2


@pytest.mark.long
def test_a_worker_that_lost_its_claim_changes_nothing(streams: Streams, receiver: Receiver) -> None:
    stream = streams.create_destination(receiver.url).destination
    streams.write_events()
    with streams.open_session() as session:
        (lost,) = AUDIT_STREAM_KIND.claim_due_destinations(
            maximum=64, session=session, now=streams.now
        )
    streams.advance_time(seconds=30)
    streams.deliver_events()
    with streams.open_session() as session:
        assert (
            AUDIT_STREAM_KIND.record_failure(
                lost,
                None,
                DeliveryAttempt(problem="it was slow"),
                RetryPolicy(share=0, patience=timedelta(days=5)),
                session=session,
                now=streams.now,
            )
            is None
        )
        assert (
            AUDIT_STREAM_KIND.take_next_delivery(
                lost, session=session, keyring=streams.keyring, now=streams.now
            )
            is None
        )
    assert streams.read_stream_state(stream).state is DestinationState.ACTIVE


def test_both_secrets_sign_until_the_old_one_expires(streams: Streams, receiver: Receiver) -> None:
    old = streams.create_destination(receiver.url)
    until = streams.now + timedelta(hours=1)

    def rotate(stream_id: int, *, hours: float) -> str:
        with streams.open_session() as session:
            return AUDIT_STREAM_KIND.rotate_secret(
                stream_id,
                previous_until=streams.now + timedelta(hours=hours),
                session=session,
                keyring=streams.keyring,
                now=streams.now,
            ).secret

    new = rotate(old.destination.id, hours=1)
    assert streams.read_stream_state(old.destination).previous_secret_expires_at == until
    streams.write_events()
    streams.deliver_events()
    for secret in (old.secret, new):
        assert receiver.received[-1].verified_by(secret)
    signatures = receiver.received[-1].headers["webhook-signature"].split(" ")
    assert [each.split(",")[0] for each in signatures] == ["v1", "v1"]

    newest = rotate(old.destination.id, hours=0)
    assert streams.read_stream_state(old.destination).previous_secret_expires_at is None
    streams.write_events()
    streams.deliver_events()
    assert receiver.received[-1].verified_by(newest)
    for secret in (old.secret, new):
        with pytest.raises(WebhookVerificationError):
            receiver.received[-1].verified_by(secret)
    rotate(old.destination.id, hours=1)
    streams.advance_time(hours=2)
    streams.write_events()
    streams.deliver_events()
    assert " " not in receiver.received[-1].headers["webhook-signature"]
    with pytest.raises(InvalidError, match="at most 90"):
        rotate(old.destination.id, hours=91 * 24)


@pytest.mark.long
def test_a_resumed_destination_gets_its_backlog(streams: Streams, receiver: Receiver) -> None:
    stream = streams.create_destination(receiver.url).destination
    with streams.open_session() as session:
        AUDIT_STREAM_KIND.pause_destination(stream.id, session=session, now=streams.now)
    written = streams.write_events(2)
    assert streams.deliver_events() == 0
    state = streams.read_stream_state(stream)
    assert (state.state, state.backlog) == (DestinationState.PAUSED, 2)
    with streams.open_session() as session:
        AUDIT_STREAM_KIND.resume_destination(stream.id, session=session)
    streams.deliver_events()
    assert receiver.subjects == written


def test_a_new_url_gets_the_backlog(streams: Streams, receiver: Receiver) -> None:
    stream = streams.create_destination(DOWN).destination
    written = streams.write_events(2)
    streams.deliver_events()
    assert streams.read_stream_state(stream).last_error == "the connection was refused"
    with streams.open_session() as session:
        AUDIT_STREAM_KIND.change_destination(
            stream.id,
            DestinationDetails(url=receiver.url),
            session=session,
            keyring=streams.keyring,
        )
    streams.deliver_events()
    assert receiver.subjects == written


@pytest.mark.long
def test_the_backlog_of_a_removed_destination_is_deleted(
    streams: Streams, receiver: Receiver
) -> None:
    streams.create_destination(receiver.url)
    removed = streams.create_destination(DOWN).destination
    written = streams.write_events(3)
    streams.deliver_events()
    with streams.open_session() as session:
        AUDIT_STREAM_KIND.delete_destination(removed.id, session=session)
    newer = streams.create_destination(receiver.url.replace("/events", "/newer")).destination
    # The id is not reused, so the new destination gets no events of the removed one.
    assert newer.id > removed.id
    assert streams.deliver_events() == 0
    assert receiver.subjects == written
    with streams.open_session() as session:
        assert delete_orphaned_events(session=session, commit_batch=session.flush) == 3
        assert delete_orphaned_events(session=session, commit_batch=session.flush) == 0


@pytest.mark.long
def test_a_destination_is_shown_as_failing_after_a_day(streams: Streams) -> None:
    stream = streams.create_destination(DOWN).destination
    streams.write_events()
    streams.deliver_events()
    streams.advance_time(hours=23)
    assert streams.read_stream_state(stream).state is DestinationState.RETRYING
    streams.advance_time(hours=1)
    assert streams.read_stream_state(stream).state is DestinationState.FAILING
    # Delivery attempts continue.
    assert streams.deliver_events() == 1


def test_a_backlog_is_limited_by_age_and_size_and_counts_dropped_entries(streams: Streams) -> None:
    stream = streams.create_destination(DOWN).destination
    streams.write_events(3)
    streams.advance_time(days=15)
    streams.write_events(5)

    def drop(**limits: int) -> int:
        with streams.open_session() as session:
            return drop_old_stream_events(
                session=session,
                before=streams.now - timedelta(days=14),
                now=streams.now,
                commit_batch=session.flush,
                **limits,
            )

    assert drop() == 3
    assert drop(maximum=2) == 3
    assert drop(maximum=2) == 0
    state = streams.read_stream_state(stream)
    assert (state.backlog, state.dropped, state.last_dropped_at) == (2, 6, streams.now)


def test_a_retry_after_header_delays_the_next_attempt(streams: Streams, receiver: Receiver) -> None:
    receiver.answer = lambda _request: (429, {"Retry-After": "90"})
    stream = streams.create_destination(receiver.url).destination
    streams.write_events()
    streams.deliver_events()
    assert streams.read_stream_state(stream).next_try_at == streams.now + timedelta(seconds=90)


def test_private_addresses_are_rejected_unless_allowed(
    streams: Streams, receiver: Receiver
) -> None:
    stream = streams.create_destination(receiver.url).destination
    streams.write_events()
    streams.deliver_events(outgoing_private_addresses="")
    assert receiver.received == []
    assert "127.0.0.1 is a loopback address" in str(streams.read_stream_state(stream).last_error)


def test_a_secret_that_cannot_be_decrypted_is_reported(
    streams: Streams, receiver: Receiver
) -> None:
    stream = streams.create_destination(receiver.url).destination
    streams.write_events()
    streams.deliver_events(secret_key="another key that nobody has used here before")
    assert "enter the URL again" in str(streams.read_stream_state(stream).last_error)


def test_the_number_of_destinations_is_limited(streams: Streams) -> None:
    for _ in range(MAX_STREAMS):
        streams.create_destination(DOWN)
    with pytest.raises(ConflictError, match="Delete a destination first"):
        streams.create_destination(DOWN)
