"""Nasty values in every parameter of the pages about alerts: an answer, and never a fault."""

from collections.abc import Mapping
from functools import cache

import pytest

from domain.accounts.roles import Role
from tests.support.garbage import NASTY
from tests.support.live import LiveGatebell
from tests.support.senders import Endpoint, connect
from tests.support.team import browser_of

LIST = (
    *("status", "search", "severity", "environment", "service", "assignee", "integration"),
    *("sort", "before", "after"),
)
PAGES: Mapping[str, tuple[str, ...]] = {
    "/-/alerts": (*LIST, "_part"),
    "/-/alerts/export.csv": LIST,
    "/-/alerts/export.json": LIST,
    "/-/alerts/1": ("reports", "activity"),
    "/-/environments": ("search", "before", "after"),
    "/-/environments/prod": ("before", "after"),
    "/-/settings/integrations/{id}/deliveries": ("show", "status", "before"),
    "/-/settings/integrations/{id}/configure": ("sample",),
}
#: What a page says to a value that it cannot take.
REFUSALS = {400, 404, 422}


@cache
def endpoint_of(gatebell: LiveGatebell) -> Endpoint:
    """Return an endpoint with something on each of its pages."""
    endpoint = connect(gatebell)
    endpoint.accepted(title="{{7*7}}", platform_environment_name="prod")
    endpoint.post(b"{")
    return endpoint


@pytest.mark.parametrize("path", PAGES)
def test_a_nasty_value_is_taken_or_refused_in_words(gatebell: LiveGatebell, path: str) -> None:
    endpoint = endpoint_of(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    address = f"{gatebell.url}/{endpoint.project}{path.format(id=endpoint.id)}"
    for name in PAGES[path]:
        for value in NASTY:
            answer = browser.get(address, params={name: value})
            assert answer.status_code in {200, *REFUSALS}, (name, value)
            assert "<script>alert" not in answer.text or "json" in path, (name, value)
            assert not {" 49 ", ">49<"} & {answer.text}, (name, value)
            assert "X-Injected" not in answer.headers, (name, value)
