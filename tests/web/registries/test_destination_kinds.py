"""Tests of a new kind of destination, which inherits everything except its tables."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import MetaData, delete, select
from sqlalchemy.orm import Mapped, Session, mapped_column
from standardwebhooks.webhooks import WebhookVerificationError

from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.base import get_column_values
from domain.delivery.destination_types import Destination as DestinationShown
from domain.delivery.outgoing.attempts import ClaimedDelivery, DeliveryAttempt, DeliveryFailure
from domain.delivery.outgoing.destinations import (
    DestinationDetails,
    DestinationManager,
    DestinationQueue,
    DestinationState,
    DestinationWithSecret,
    FailedAttempt,
)
from domain.delivery.outgoing.signing import OutgoingMessage
from models.base import Base, BigId
from models.destination import Destination
from tests.support.service.message_receiver import Receiver, running_receiver
from web.database.engine import open_engine
from web.jobs.destinations import DestinationJob
from web.settings.environment import Settings

#: Separate from the product's metadata, whose tables are compared with the migrations.
_TABLES = MetaData()


class Castle(Destination):
    metadata = _TABLES
    __tablename__ = "castles"

    king_id: Mapped[int]


class Raven(Base):
    metadata = _TABLES
    __tablename__ = "ravens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    castle_id: Mapped[int]
    words: Mapped[str]
    hatched_at: Mapped[datetime]


class Castles(DestinationManager[Castle, DestinationShown, DestinationDetails]):
    noun, message_noun = "castle", "raven"
    max_destinations = 2
    too_many, not_found = "The realm is full.", "No such castle."
    row = Castle
    owner_column = "king_id"
    queue = DestinationQueue(
        entry=Raven,
        destination=Raven.castle_id,
        queued_at=Raven.hatched_at,
        is_waiting=Raven.words != "",
    )

    def build_view(self, row: Castle, *more: Any, **shared: Any) -> DestinationShown:
        del more
        return DestinationShown(**get_column_values(row, DestinationShown) | shared)

    def get_next_message(
        self, row: Castle, *, session: Session, now: datetime
    ) -> tuple[int, OutgoingMessage] | None:
        del now
        mine = select(Raven).where(Raven.castle_id == row.id).order_by(Raven.id).limit(1)
        found = session.scalar(mine)
        if found is None:
            return None
        return found.id, OutgoingMessage(id=f"raven_{found.id}", body=found.words.encode())

    def record_accepted_message(
        self,
        row: Castle | None,
        delivery: ClaimedDelivery,
        attempt: DeliveryAttempt,
        *,
        session: Session,
        now: datetime,
    ) -> None:
        del row, attempt, now
        session.execute(delete(Raven).where(Raven.id == delivery.entry_id))

    def record_rejected_message(
        self, row: Castle, refusal: FailedAttempt, *, session: Session, now: datetime
    ) -> DeliveryFailure:
        del row, session, now
        return refusal.failure


CASTLES = Castles()


class RavenPost(DestinationJob):
    name = "ravens"
    kind = CASTLES
    subject = "castle"
    log = logging.getLogger("gatebell.ravens")


class Realm:
    """Represents destinations in the test's own database, and a worker that runs on request."""

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, outgoing_private_addresses="127.0.0.0/8")
        self.now = datetime.now(UTC)
        self.engine = open_engine(settings)
        self.keyring = Keyring(settings.secret_key)
        _TABLES.create_all(self.engine)
        self.worker = RavenPost(self.settings, clock=lambda: self.now, share=lambda: 1.0)

    def close(self) -> None:
        self.worker.finish_current_run()
        self.engine.dispose()

    def build(self, url: str, king: int = 1) -> DestinationWithSecret[DestinationShown]:
        details = DestinationDetails(url=url)
        with Session(self.engine) as session, session.begin():
            return CASTLES.create_destination(
                details, owner=king, session=session, keyring=self.keyring, now=self.now
            )

    def hatch(self, castle: DestinationShown, words: str = '"Winter"') -> None:
        with Session(self.engine) as session, session.begin():
            session.add(Raven(castle_id=castle.id, words=words, hatched_at=self.now))

    def state(self, castle: DestinationShown) -> DestinationShown:
        with Session(self.engine) as session:
            return CASTLES.get_destination(
                castle.id, owner=1, session=session, keyring=self.keyring, now=self.now
            )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


@pytest.fixture
def realm(settings: Settings) -> Iterator[Realm]:
    made = Realm(settings)
    yield made
    made.close()


def test_messages_of_a_new_kind_are_signed_retried_and_sent_in_order(
    realm: Realm, receiver: Receiver
) -> None:
    made = realm.build(receiver.url)
    castle = made.destination
    realm.hatch(castle, '"First"')
    realm.hatch(castle, '"Second"')
    receiver.answer = lambda _request: (503, {})
    realm.worker.process_all_due_work()
    state = realm.state(castle)
    assert (state.state, state.failures, state.backlog) == (DestinationState.RETRYING, 1, 2)
    assert state.next_try_at == realm.now + timedelta(seconds=1.2)
    realm.now += timedelta(seconds=7)
    receiver.answer = lambda _request: (204, {})
    realm.worker.process_all_due_work()
    assert [each.body for each in receiver.received] == [b'"First"', b'"Second"']
    assert realm.state(castle).state is DestinationState.ACTIVE
    with pytest.raises(WebhookVerificationError):
        receiver.received[0].verified_by("whsec_b3RoZXI=")


def test_destinations_of_owners_are_separate_and_limited(realm: Realm, receiver: Receiver) -> None:
    mine = [realm.build(receiver.url).destination for _ in range(2)]
    with pytest.raises(ConflictError, match="The realm is full"):
        realm.build(receiver.url)
    realm.build(receiver.url, king=2)
    with Session(realm.engine) as session:
        found = CASTLES.list_all_destinations(
            owner=1, session=session, keyring=realm.keyring, now=realm.now
        )
        assert found == mine
        with pytest.raises(NotFoundError, match="No such castle"):
            CASTLES.get_destination(
                mine[0].id, owner=2, session=session, keyring=realm.keyring, now=realm.now
            )


def test_a_new_kind_can_be_paused_rotated_changed_and_removed(
    realm: Realm, receiver: Receiver
) -> None:
    castle = realm.build("http://127.0.0.1:1/").destination
    realm.hatch(castle)
    with Session(realm.engine) as session, session.begin():
        CASTLES.pause_destination(castle.id, owner=1, session=session, now=realm.now)
    assert realm.worker.process_all_due_work() == 0
    with Session(realm.engine) as session, session.begin():
        until = realm.now + timedelta(days=1)
        CASTLES.rotate_secret(
            castle.id,
            owner=1,
            previous_until=until,
            session=session,
            keyring=realm.keyring,
            now=realm.now,
        )
        details = DestinationDetails(url=receiver.url)
        CASTLES.change_destination(
            castle.id, details, owner=1, session=session, keyring=realm.keyring
        )
        CASTLES.resume_destination(castle.id, owner=1, session=session)
    assert realm.worker.process_all_due_work() == 1
    (received,) = receiver.received
    assert len(received.headers["webhook-signature"].split()) == 2
    realm.hatch(castle)
    with Session(realm.engine) as session, session.begin():
        CASTLES.delete_destination(castle.id, owner=1, session=session)
        orphans = CASTLES.build_orphan_condition()
        assert CASTLES.delete_entries(orphans, session=session, commit_batch=session.flush) == 1
