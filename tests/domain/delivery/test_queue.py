"""Tests the pauses and claims that delivery queues share."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from domain.core.clock import read_system_clock
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.delivery.mail.failing_mail import give_up_emails
from domain.delivery.mail.outbox import (
    MAIL_QUEUE,
    ClaimedEmail,
    NewEmail,
    claim_due_email,
    queue_emails,
    record_email_failed,
    record_email_sent,
)
from domain.delivery.queue import Backoff, Claim
from models import AuditStream, Mail

_MINUTE = timedelta(minutes=1)
_NOW = read_system_clock()
_BACKOFF = Backoff(first=_MINUTE, longest=timedelta(hours=2), jitter=0.25)


def test_pauses_double_up_to_the_longest_pause() -> None:
    pauses = [_BACKOFF.compute_pause(failures) / _MINUTE for failures in range(10)]
    assert pauses == [1, 1, 2, 4, 8, 16, 32, 64, 120, 120]


@given(failures=st.integers(0, 10**9), share=st.floats(0, 1), requested=st.integers(0, 10**6))
def test_pauses_stay_between_the_first_and_the_longest_pause(
    failures: int, share: float, requested: int
) -> None:
    pause = _BACKOFF.compute_pause(failures, share=share, requested=timedelta(seconds=requested))
    assert 0.75 * _MINUTE <= pause <= _BACKOFF.longest_varied == timedelta(minutes=150)
    assert pause >= min(timedelta(seconds=requested), _BACKOFF.longest_varied)


def test_early_pauses_precede_the_pauses_that_double() -> None:
    backoff = replace(_BACKOFF, early=(_MINUTE / 60, _MINUTE / 6))
    pauses = [backoff.compute_pause(failures) / _MINUTE for failures in range(6)]
    assert pauses == pytest.approx([1 / 60, 1 / 60, 1 / 6, 1, 2, 4])
    # A receiver can request at most the longest early pause, and then the longest pause.
    requested = [backoff.compute_pause(each, requested=_MINUTE * 999) / _MINUTE for each in (1, 3)]
    assert requested == pytest.approx([1.25 / 6, 150])


@pytest.fixture
def due_stream(engine: Engine) -> int:
    """Create an audit stream that is due."""
    with Session(engine) as session, session.begin():
        row = AuditStream(url="https://x.example/", secret_ciphertext="", created_at=_NOW)
        session.add(row)
        session.flush()
        return row.id


def _claim_streams(session: Session, minutes: float = 0) -> Sequence[Claim]:
    return AUDIT_STREAM_KIND.claims.claim_destinations(
        select(AuditStream.id), session=session, now=_NOW + minutes * _MINUTE
    )


def test_a_destination_is_claimed_until_its_claim_ends_is_released_or_fails(
    engine: Engine, due_stream: int
) -> None:
    queue = AUDIT_STREAM_KIND.claims
    with Session(engine) as session:
        (first,) = _claim_streams(session)
        assert (first.destination_id, _claim_streams(session)) == (due_stream, [])
        queue.release_claim(first, session=session)
        (second,) = _claim_streams(session)
        row = queue.lock_destination(second, session=session)
        assert row is not None
        queue.record_failure(row, "timeout", pause=_MINUTE, now=_NOW)
        assert (row.tries, row.failing_since, row.last_error) == (1, _NOW, "timeout")
        session.flush()
        assert _claim_streams(session, 0.9) == []
        (third,) = _claim_streams(session, 1)
        assert [first.number, second.number, third.number] == [1, 2, 3]
        assert _claim_streams(session, 1 + queue.claim_lifetime / _MINUTE) == []
        assert len(_claim_streams(session, 1.1 + queue.claim_lifetime / _MINUTE)) == 1


@pytest.mark.usefixtures("due_stream")
def test_a_worker_that_lost_its_claim_neither_locks_nor_releases_the_destination(
    engine: Engine,
) -> None:
    queue = AUDIT_STREAM_KIND.claims
    with Session(engine) as session:
        (lost,) = _claim_streams(session)
        (current,) = _claim_streams(session, 1)
        assert queue.lock_destination(lost, session=session) is None
        queue.release_claim(lost, session=session)
        assert _claim_streams(session, 1) == []
        row = queue.lock_destination(current, session=session)
        assert row is not None
        queue.renew_claim(row, now=_NOW + 2 * _MINUTE)
        session.flush()
        assert _claim_streams(session, 2) == []


@pytest.fixture
def due_emails(engine: Engine) -> list[int]:
    """Queue three emails that are due, the last one first, and one that is not due."""
    with Session(engine) as session, session.begin():
        emails = [
            NewEmail(key=str(number), recipient="a@x.example", subject="Hi", text="Hello")
            for number in range(4)
        ]
        queue_emails(emails, session=session, keyring=Keyring("k" * 32), now=_NOW)
        for number, minutes in enumerate((1, 2, 3, -1)):
            due_at = _NOW - minutes * _MINUTE
            session.execute(update(Mail).where(Mail.key == str(number)).values(send_at=due_at))
        ids = dict(session.query(Mail.key, Mail.id).all())
    return [ids["2"], ids["1"], ids["0"]]


def _claim(session: Session, maximum: int, minutes: float = 0) -> list[tuple[int, int]]:
    claim = MAIL_QUEUE.claim_due_rows(
        Mail.id, Mail.tries, maximum=maximum, session=session, now=_NOW + minutes * _MINUTE
    )
    return sorted((row.id, row.tries) for row in claim)


def test_rows_that_wait_longest_are_claimed_first_and_each_only_once(
    engine: Engine, due_emails: list[int]
) -> None:
    with Session(engine) as session:
        assert _claim(session, 2) == sorted((each, 1) for each in due_emails[:2])
        assert _claim(session, 5) == [(due_emails[2], 1)]
        assert _claim(session, 5) == []


@pytest.mark.usefixtures("due_emails")
def test_rows_of_a_killed_worker_are_due_again_when_its_claim_ends(engine: Engine) -> None:
    minutes = MAIL_QUEUE.claim_lifetime / _MINUTE
    with Session(engine) as session:
        _claim(session, 3)
        assert [tries for _, tries in _claim(session, 5, minutes - 1.5)] == [1]  # not due before
        assert {tries for _, tries in _claim(session, 5, minutes)} == {2}


@pytest.mark.one_database("postgres")
def test_a_worker_skips_rows_that_another_worker_is_claiming(
    engine: Engine, due_emails: list[int]
) -> None:
    with Session(engine) as first, Session(engine) as second:
        assert _claim(first, 1) == [(due_emails[0], 1)]
        assert _claim(second, 1) == [(due_emails[1], 1)]


@pytest.mark.parametrize("is_sent", [True, False])
@pytest.mark.usefixtures("due_emails")
def test_an_email_that_is_given_up_during_an_attempt_is_not_queued_again(
    engine: Engine, *, is_sent: bool
) -> None:
    keyring = Keyring("k" * 32)
    with Session(engine) as session:
        session.execute(update(Mail).values(last_error="timeout"))
        claimed = claim_due_email(session=session, keyring=keyring, now=_NOW)
        assert isinstance(claimed, ClaimedEmail)
        assert give_up_emails("x.example", session=session, keyring=keyring, now=_NOW) == 4
        if is_sent:
            record_email_sent(claimed, session=session, keyring=keyring, now=_NOW)
        else:
            record_email_failed(claimed, "timeout", session=session, keyring=keyring, now=_NOW)
        row = session.get_one(Mail, claimed.id, populate_existing=True)
        assert (row.send_at, row.sent_at is not None) == (None, is_sent)
