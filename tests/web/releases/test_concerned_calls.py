"""Tests that calls affected by a change are counted before and after it, even if rejected."""

from http import HTTPStatus
from typing import Any, NamedTuple

import pytest

from tests.support.releases.recorded_calls import RecordedService

pytestmark = [pytest.mark.spec("M2"), pytest.mark.one_database("sqlite")]


def recorded(service: RecordedService) -> list[tuple[str, str, bool]]:
    """Return the route, the recorded changes, and whether the caller is known, of each row."""
    service.flush()
    return [
        (f"{shape.method} {shape.route}", shape.changes, count.user_id is not None)
        for shape, count in service.rows()
    ]


class Step(NamedTuple):
    """Describes a call that a release rejects."""

    method: str
    path: str
    sent: dict[str, Any]
    change: str
    route: str
    release: str


STEPS = (
    Step("GET", "/users?page=2", {}, "users-offset-pagination", "/api/v4/users", "17.0"),
    Step(
        "PUT",
        "/projects/acme%2Fshop",
        {"json": {"operations_access_level": "enabled"}},
        "operations-access-level",
        "/api/v4/projects/:id",
        "16.0",
    ),
    Step(
        "GET",
        "/projects/acme%2Fshop/deployments?order_by=updated_at",
        {},
        "deployments-updated-at",
        "/api/v4/projects/:id/deployments",
        "16.0",
    ),
)


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.change)
def test_an_affected_call_is_counted_before_its_release_and_when_it_is_rejected(
    service: RecordedService, step: Step
) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    nightly = service.token_of(alice)
    expected = (f"{step.method} {step.route}", step.change, True)
    assert nightly(step.method, step.path, **step.sent).status_code == HTTPStatus.OK
    assert recorded(service) == [expected]

    service.wait(days=1)
    service.change_release(step.release)
    refused = nightly(step.method, step.path, **step.sent)
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert set(recorded(service)) == {expected}
    assert sum(count.count for _, count in service.rows()) == 2


def test_a_rejected_rehearsal_is_not_counted(service: RecordedService) -> None:
    nightly = service.token_of(service.person("alice"))
    refused = nightly("GET", "/users?page=2", headers={"Platform-Release": "17.0"})

    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert recorded(service) == []


@pytest.mark.long
def test_requests_without_a_token_are_counted_if_a_url_is_removed(
    service: RecordedService,
) -> None:
    assert service.app.test_client().get("/-/jwks").status_code == HTTPStatus.OK

    assert recorded(service) == [("GET /-/jwks", "jwks-alias", False)]


@pytest.mark.long
def test_runner_calls_are_counted_although_they_are_not_implemented(
    service: RecordedService,
) -> None:
    nightly = service.token_of(service.person("alice"))
    answer = nightly("POST", "/runners/reset_registration_token")
    assert answer.status_code == HTTPStatus.NOT_FOUND

    ((route, change, _),) = recorded(service)
    assert route.startswith("POST /api/v4/runners")
    assert change == "instance-runners-reset-registration-token"


def test_a_page_request_of_a_signed_in_user_is_counted_for_that_user(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    browser = service.browser_of(alice)
    assert browser.get("/acme/shop/alerts").status_code == HTTPStatus.FOUND

    assert recorded(service) == [("GET /:full_path", "legacy-page-urls", True)]
    ((_, count),) = service.rows()
    assert (count.user_id, count.personal_token_id) == (alice.id, None)
