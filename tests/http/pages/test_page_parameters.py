"""Hostile values in every parameter of the pages about alerts: no request causes a 5xx."""

from collections.abc import Mapping
from functools import cache

import pytest

from domain.access.roles import Role
from tests.support.accounts.team import browser_of
from tests.support.alerts.incidents import create_incident
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

LIST = (
    *("status", "search", "severity", "environment", "service", "assignee", "integration"),
    *("sort", "before", "after"),
)
PAGES: Mapping[str, tuple[str, ...]] = {
    "/-/alerts": (*LIST, "_part"),
    "/-/alerts/1": ("cursor", "sort"),
    "/-/incidents": ("status", "search", "severity", "assignee", "sort", "before", "after"),
    "/-/incidents/1": ("alerts", "cursor", "sort"),
    "/-/environments": ("search", "before", "after"),
    "/-/environments/prod": ("before", "after"),
    "/-/settings/integrations/{id}/deliveries": ("show", "status", "before"),
    "/-/settings/integrations/{id}/configure": ("sample",),
}
#: An expression that no template may evaluate, and its value.
TEMPLATE, EVALUATED = "{{1234567*7}}", "8641969"
#: Values that the test searches for on the whole page.
TOLD = (TEMPLATE, "<script>alert(1)</script>", "\u202e")
#: Statuses of pages that reject a value.
REFUSALS = {400, 404, 422}


@cache
def endpoint_of(gatebell: LiveGatebell) -> Endpoint:
    """Return an endpoint whose project has content on each of these pages."""
    endpoint = connect(gatebell)
    endpoint.accepted(title=TEMPLATE, platform_environment_name="prod")
    endpoint.post(b"{")
    create_incident(gatebell, endpoint.project, alerts=[1])
    return endpoint


#: Exports, one for each database, since both read the same list.
EXPORTS = {"sqlite": "/-/alerts/export.csv", "postgres": "/-/alerts/export.json"}
#: One value of each class, for the exports and for SQLite, which accepts any text.
FEW = ("", "a\x00b", "' OR 1=1 --", "%s%n", "\r\nX-Injected: y", "9" * 40, TEMPLATE)
#: More values for PostgreSQL, which rejects some texts.
MANY = (
    *FEW,
    *(" ", "🔔", "\u202e", "\ufffe", "\\", "{0.__class__}", "<script>alert(1)</script>"),
    *("-1", "1e400", "a" * 1500),
)


@pytest.mark.parametrize("path", PAGES)
def test_hostile_parameters_cause_no_server_error(gatebell: LiveGatebell, path: str) -> None:
    values = MANY if kind_of(gatebell) == "postgres" else FEW
    assert_no_fault(gatebell, path, PAGES[path], values)


@pytest.mark.long
def test_hostile_parameters_of_exports_cause_no_server_error(gatebell: LiveGatebell) -> None:
    assert_no_fault(gatebell, EXPORTS[kind_of(gatebell)], LIST, FEW)


def kind_of(gatebell: LiveGatebell) -> str:
    return "sqlite" if gatebell.database_url.startswith("sqlite") else "postgres"


def assert_no_fault(
    gatebell: LiveGatebell, path: str, names: tuple[str, ...], values: tuple[str, ...]
) -> None:
    endpoint = endpoint_of(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    address = f"{gatebell.url}/{endpoint.project}{path.format(id=endpoint.id)}"
    for name in names:
        for value in values:
            # Only the list is requested, which is faster; some values need the whole page.
            part = {"_part": "list"} if path == "/-/alerts" and value not in TOLD else {}
            answer = browser.get(address, params={**part, name: value})
            assert answer.status_code in {200, *REFUSALS}, (name, value)
            assert "<script>alert" not in answer.text or "json" in path, (name, value)
            assert EVALUATED not in answer.text, (name, value)
            assert "X-Injected" not in answer.headers, (name, value)
