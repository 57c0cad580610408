"""Tests of `/admin`, the overview of the instance."""

from time import monotonic, sleep

import pytest

from tests.support.accounts.administration import (
    forget_settings,
    get_administrator_browser,
    store_setting,
)
from tests.support.accounts.people import alice, make_project
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def overview(gatebell: LiveGatebell) -> str:
    page = get_administrator_browser(gatebell).get(f"{gatebell.url}/admin")
    assert page.status_code == 200, page.text
    return page.text


@pytest.mark.both_databases
def test_the_overview_shows_database_health_and_version(gatebell: LiveGatebell) -> None:
    page = overview(gatebell)
    kind = "Postgres" if gatebell.database_url.startswith("postgres") else "SQLite"
    assert f"<dd>{kind} " in page
    assert ">Ready<" in page.replace("</svg>", ">").replace(">>", ">")
    assert "18.0, ultimate" in page


def test_the_overview_shows_the_running_worker(gatebell: LiveGatebell) -> None:
    deadline = monotonic() + 30
    while "Running" not in overview(gatebell) and monotonic() < deadline:
        sleep(0.5)
    assert "Running" in overview(gatebell)


def test_the_overview_warns_about_the_initial_password(gatebell: LiveGatebell) -> None:
    assert "@admin still uses the initial password" in overview(gatebell)


@pytest.mark.both_databases
def test_the_overview_shows_the_last_deliveries(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    endpoint = connect(gatebell, project)
    endpoint.accepted(title="It works")
    page = overview(gatebell)
    assert project in page
    assert "Accepted · 200" in page


def test_the_overview_warns_about_risky_settings(gatebell: LiveGatebell) -> None:
    store_setting(gatebell, "password_min_length", "8")
    try:
        assert "<strong>Password minimum length</strong> is less than 12" in overview(gatebell)
    finally:
        forget_settings(gatebell)
    assert "Password minimum length" not in overview(gatebell)
