"""Tests of the records of calls: caller, operation and parameter names, but no values or tokens."""

from datetime import timedelta
from http import HTTPStatus

import pytest
from sqlalchemy import delete, select

from domain.releases.usage.call_counts import (
    ANONYMOUS_CONSUMER,
    MAX_COUNTS,
    MAX_SHAPES_PER_CONSUMER,
    MAX_SHAPES_PER_DAY,
    CallCounter,
    CallTotals,
    Consumer,
    UsageSignature,
)
from models import CallCount, CallSignature, PersonalAccessToken
from tests.support.releases.recorded_calls import NOON, RecordedService
from web.jobs.retention import prune_database


@pytest.mark.long
def test_a_call_is_recorded_by_token_route_and_parameter_names_without_values(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    nightly = service.token_of(alice)
    for _ in range(3):
        listed = nightly("GET", "/projects/acme%2Fshop/environments?search=prod&per_page=7")
        assert listed.status_code == HTTPStatus.OK
        service.wait(seconds=1)
    assert service.flush()

    ((shape, count),) = service.rows()
    assert (shape.method, shape.route) == ("GET", "/api/v4/projects/:id/environments")
    assert (shape.parameters, shape.changes) == ("per_page search", "")
    assert (count.user_id, count.application_id) == (alice.id, None)
    assert count.personal_token_id is not None
    assert (count.count, count.day) == (3, NOON.date())
    assert (count.first_at, count.last_at) == (NOON, NOON + timedelta(seconds=2))
    assert count.last_address == "127.0.0.1"


@pytest.mark.long
def test_calls_are_counted_per_day(
    service: RecordedService,
) -> None:
    nightly = service.token_of(service.person("alice"))
    for hours in (0, 1, 20):
        service.wait(hours=hours)
        nightly("GET", "/user")
        nightly("HEAD", "/user")
        service.flush()

    assert [count.count for _, count in service.rows()] == [4, 2]
    assert len({shape.id for shape, _ in service.rows()}) == 1


@pytest.mark.long
def test_consumers_are_applications_project_tokens_and_anonymous_callers(
    service: RecordedService,
) -> None:
    alice, bob = service.person("alice"), service.person("bob")
    service.project_of(alice)
    board = service.application_of(bob)
    for caller in (service.grant(board, alice), service.resource_token_of("acme/shop")):
        assert caller("GET", "/projects/acme%2Fshop").status_code == HTTPStatus.OK
    service.app.test_client().get("/api/v4/projects")
    service.flush()

    found = {
        (
            shape.route,
            count.user_id == alice.id,
            count.application_id,
            bool(count.personal_token_id),
        )
        for shape, count in service.rows()
    }
    assert found == {
        ("/api/v4/projects", False, None, False),
        ("/api/v4/projects/:id", True, board, False),
        ("/api/v4/projects/:id", False, None, True),
    }


@pytest.mark.long
def test_unknown_parameter_names_and_tokens_are_not_recorded(service: RecordedService) -> None:
    nightly = service.token_of(service.person("alice"))
    hostile = {"name": "acme", "path": "acme", "x" * 5_000: "1", "'; DROP TABLE": "1", "a\x00": 1}
    assert nightly("POST", "/groups", json=hostile).status_code == HTTPStatus.CREATED
    client = service.app.test_client()
    assert client.get(f"/api/v4/groups?private_token={nightly.token}").status_code == HTTPStatus.OK
    service.flush()

    assert [(shape.method, shape.parameters) for shape, _ in service.rows()] == [
        ("GET", ""),
        ("POST", "name path …"),
    ]


@pytest.mark.long
def test_rejected_tokens_and_rehearsals_of_later_releases_are_not_recorded(
    service: RecordedService,
) -> None:
    nightly = service.token_of(service.person("alice"))
    later, now = {"Platform-Release": "18.0"}, {"Platform-Release": service.settings.release}
    service.app.test_client().get("/api/v4/user", headers={"PRIVATE-TOKEN": "none"})
    assert nightly("GET", "/groups", headers=later).status_code == HTTPStatus.OK
    assert nightly("GET", "/users", headers=now).status_code == HTTPStatus.OK
    service.flush()

    assert [shape.route for shape, _ in service.rows()] == ["/api/v4/users"]


@pytest.mark.long
def test_counts_are_deleted_with_their_token_or_by_age_and_shapes_with_the_last_count(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    nightly, weekly = service.token_of(alice), service.token_of(alice, "weekly")
    nightly("GET", "/user")
    service.flush()
    weekly("GET", "/groups")
    with service.session() as session:
        session.execute(delete(PersonalAccessToken))
    assert service.flush()
    with service.session() as session:
        assert session.scalars(select(CallCount)).all() == []

    service.app.test_client().get("/api/v4/projects")
    service.flush()
    prune_database(service.settings)
    with service.session() as session:
        assert session.scalars(select(CallCount)).all() == []
        assert session.scalars(select(CallSignature)).all() == []


@pytest.mark.long
def test_an_unavailable_database_delays_counts_without_loss(
    service: RecordedService,
) -> None:
    nightly = service.token_of(service.person("alice"))
    nightly("GET", "/user")
    with service.session() as session:
        for table in ("call_counts", "call_shapes"):
            session.connection().exec_driver_sql(f"ALTER TABLE {table} RENAME TO {table}_away")
    assert not service.flush()
    nightly("GET", "/user")
    assert not service.flush()
    with service.session() as session:
        for table in ("call_counts", "call_shapes"):
            session.connection().exec_driver_sql(f"ALTER TABLE {table}_away RENAME TO {table}")
    assert service.flush()

    ((_, count),) = service.rows()
    assert count.count == 2


def shapes(number: int) -> list[UsageSignature]:
    return [UsageSignature("GET", "/api/v4/users", (f"name{each}",), ()) for each in range(number)]


@pytest.mark.one_database("sqlite")
def test_memory_for_ten_thousand_shapes_is_bounded() -> None:
    counter = CallCounter()
    for consumer in (Consumer(user, None, None) for user in range(60)):
        for shape in shapes(10_000 // 60 + 1):
            counter.count_call(consumer, shape, address=None, now=NOON)
    calls, dropped = counter.take_counts()

    assert len(calls) == MAX_COUNTS
    assert sum(each.count.calls for each in calls) + dropped == 60 * (10_000 // 60 + 1)
    of_one = [each for each in calls if each.consumer.user_id == 1]
    assert len(of_one) == MAX_SHAPES_PER_CONSUMER + 1
    assert max(each.count.calls for each in of_one) == 10_000 // 60 + 1 - MAX_SHAPES_PER_CONSUMER


@pytest.mark.long
def test_a_consumer_has_a_bounded_number_of_rows_a_day(service: RecordedService) -> None:
    alice = service.person("alice")
    counter = service.app.extensions["gatebell"].calls
    made = shapes(MAX_SHAPES_PER_DAY + 50)
    for begin in range(0, len(made), MAX_SHAPES_PER_CONSUMER):
        for shape in made[begin : begin + MAX_SHAPES_PER_CONSUMER]:
            counter.count_call(Consumer(alice.id, None, None), shape, address=None, now=NOON)
        assert service.flush()

    rows = service.rows()
    assert len(rows) == MAX_SHAPES_PER_DAY + 1
    assert sum(count.count for _, count in rows) == len(made)


def test_added_counts_keep_the_first_and_last_time() -> None:
    count = CallTotals(2, NOON, NOON, "192.0.2.1")
    count.add_calls(
        CallTotals(3, NOON - timedelta(hours=1), NOON - timedelta(minutes=1), "192.0.2.2")
    )

    assert (count.calls, count.first_at) == (5, NOON - timedelta(hours=1))
    assert (count.last_at, count.last_address) == (NOON, "192.0.2.1")


def test_shapes_of_all_consumers_are_bounded(
    service: RecordedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.releases.usage.call_counts.MAX_TOTAL_SHAPES", 5)
    monkeypatch.setattr("domain.releases.usage.call_counts.GUARANTEED_SHAPES_PER_USER", 4)
    counter = service.app.extensions["gatebell"].calls
    for shape in shapes(4):
        counter.count_call(ANONYMOUS_CONSUMER, shape, address=None, now=NOON)
    assert service.flush()
    for shape in shapes(9):
        counter.count_call(ANONYMOUS_CONSUMER, shape, address=None, now=NOON)
    assert service.flush()

    rows = service.rows()
    assert {shape.parameters for shape, _ in rows} == {"name0", "name1", "name2", "name3", "…"}
    assert sum(count.count for _, count in rows) == 13


@pytest.mark.long
def test_a_consumer_cannot_use_the_space_of_others(
    service: RecordedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.releases.usage.call_counts.MAX_TOTAL_SHAPES", 20)
    monkeypatch.setattr("domain.releases.usage.call_counts.GUARANTEED_SHAPES_PER_USER", 5)
    counter = service.app.extensions["gatebell"].calls
    mallory, alice = (service.person(name).id for name in ("mallory", "alice"))
    for shape in shapes(20):
        counter.count_call(Consumer(mallory, None, None), shape, address=None, now=NOON)
    assert service.flush()
    own = [UsageSignature("GET", "/api/v4/projects", (f"own{number}",), ()) for number in range(7)]
    for shape in own:
        counter.count_call(Consumer(alice, None, None), shape, address=None, now=NOON)
    more = UsageSignature("GET", "/api/v4/projects", ("more",), ())
    counter.count_call(Consumer(mallory, None, None), more, address=None, now=NOON)
    assert service.flush()

    of_alice = {shape.parameters for shape, count in service.rows() if count.user_id == alice}
    of_mallory = {shape.parameters for shape, count in service.rows() if count.user_id == mallory}
    assert len([name for name in of_alice if name.startswith("own")]) == 5
    assert "…" in of_alice
    assert "more" not in of_mallory


def test_calls_that_fail_are_counted_as_errors_of_their_application(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    board = service.grant(service.application_of(alice), alice)
    paths = ("/projects/acme%2Fshop", "/projects/acme%2Fnone", "/projects?nonsense=1", "/nothing")
    statuses = [board("GET", path).status_code for path in paths]
    assert statuses[:2] == [200, 404]
    # The scope `api` does not permit the administration.
    assert board("GET", "/application/settings").status_code == HTTPStatus.FORBIDDEN
    service.flush()
    assert board("GET", "/projects/acme%2Fnone").status_code == HTTPStatus.NOT_FOUND
    service.flush()

    rows = {shape.route: (count.count, count.errors) for shape, count in service.rows()}
    assert rows["/api/v4/projects/:id"] == (3, 2)
    assert rows["/api/v4/application/settings"] == (1, 1)
    assert {count.application_id for _, count in service.rows()} != {None}
