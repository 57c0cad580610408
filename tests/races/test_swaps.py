"""Two swap requests for the same shift that are accepted at the same time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.core.errors import ConflictError
from domain.paging.on_call.swap_request_types import SwapRequestAnswer
from domain.paging.on_call.swap_requests import answer_swap_request, create_swap_request
from domain.paging.on_call.types import NewSwap
from domain.projects.access import get_project
from domain.projects.views import ProjectView, Viewer
from models import OnCallSwap
from tests.support.database.work import user_actor, work_in
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person
from web.settings.environment import Settings

pytestmark = [
    pytest.mark.one_database("postgres"),
    pytest.mark.parametrize("database_url", ["postgres"], indirect=True),
]


@pytest.fixture
def shop(settings: Settings) -> Iterator[Escalated]:
    made = Escalated(replace(settings, database_statement_timeout_ms=5_000))
    yield made
    made.engine.dispose()


def as_user(shop: Escalated, session: Session, person: Person) -> tuple[UnitOfWork, ProjectView]:
    """Return the unit of work of a member, and the project."""
    actor = user_actor(person.id, person.username)
    project = get_project("acme/shop", Viewer(user_id=person.id), session=session)
    return work_in(session, actor=actor, now=shop.now), project


def test_only_one_of_two_requests_for_a_shift_is_accepted(shop: Escalated) -> None:
    carol = shop.person("carol")
    schedule = shop.schedule("Primary", shop.alice, shop.bob, carol)
    requests = []
    for days, other in ((1, shop.bob), (2, carol)):
        starts_at, other_starts_at = (shop.now + timedelta(days=each) for each in (3, days))
        new = NewSwap(
            user="alice",
            starts_at=starts_at,
            ends_at=starts_at + timedelta(hours=1),
            other_user=other.username,
            other_starts_at=other_starts_at,
            other_ends_at=other_starts_at + timedelta(hours=1),
        )
        with shop.session() as session:
            made = create_swap_request(*as_user(shop, session, shop.alice), schedule, new)
        requests.append((made.id, other))

    def accept(session: Session, request_id: int, person: Person) -> None:
        body = SwapRequestAnswer(answer="accept")
        answer_swap_request(*as_user(shop, session, person), schedule, request_id, body)

    def accept_second() -> None:
        with shop.session() as session:
            accept(session, *requests[1])

    with ThreadPoolExecutor(1) as other_thread:
        with shop.session() as session:
            accept(session, *requests[0])
            waiting = other_thread.submit(accept_second)
            wait([waiting], timeout=0.5)
        with pytest.raises(ConflictError, match="shifts have changed"):
            waiting.result(30)
    assert len(shop.rows(OnCallSwap)) == 1
