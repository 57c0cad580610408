"""Charts in a real browser: values on hover, touch and without scripts, and clicks that filter."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from sqlalchemy import select, update

from domain.access.roles import Role
from models import Alert, Project
from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_at
from tests.support.accounts.people import alice, database_of, now
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def endpoint(gatebell: LiveGatebell) -> Endpoint:
    """A project with three alerts of the same rule that were resolved, and one other alert."""
    made = connect(gatebell)
    for number in range(3):
        made.accepted(title="Noisy rule", severity="high", fingerprint=f"{number}")
    made.accepted(title="Other", severity="critical")
    give_role(gatebell, made.project, alice(gatebell), Role.OWNER)
    with database_of(gatebell) as session:
        project = select(Project.id).where(Project.path == made.project).scalar_subquery()
        noisy = (Alert.project_id == project, Alert.title == "Noisy rule")
        ended = now() - timedelta(hours=1)
        session.execute(
            update(Alert)
            .where(*noisy)
            .values(status="resolved", started_at=ended - timedelta(hours=2), ended_at=ended)
        )
    return made


def last_column(page: Page, title: str) -> tuple[Locator, Locator]:
    """Return the area of the newest column with a value in a chart, and its text."""
    figure = page.get_by_role("figure", name=title)
    column = figure.locator(".column").filter(has=page.locator(".dot, .bar")).last
    return column.locator(".ground"), column.locator(".value")


def test_a_chart_shows_values_on_hover_and_filters_on_click(
    page: Page, gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    have_signed_in(page, gatebell, alice(gatebell))
    reports = f"{gatebell.url}/{endpoint.project}/-/on_call/reports?period=last_week"
    assert problems_at(page, reports) == []
    area, value = last_column(page, "Time to resolve by day")
    expect(value).to_be_hidden()
    area.hover()
    expect(value).to_be_visible()
    expect(value).to_have_text(re.compile("2h median, 2h 90% within"))

    page.locator("a .meter").first.click()
    expect(page).to_have_url(
        re.compile(r"/alerts\?status=all&search=Noisy%20rule|search=Noisy\+rule")
    )
    expect(page.locator("[data-alert-row]")).to_have_count(3)

    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts")
    page.locator(".spark > summary").click()
    page.locator(".chart-legend").get_by_role("link", name="Critical").click()
    expect(page.locator("[data-alert-row]")).to_have_count(1)


@pytest.mark.long
def test_a_chart_shows_values_on_touch_without_scripts(
    browser: Browser, gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, java_script_enabled=False
    )
    page = context.new_page()
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{endpoint.project}/-/on_call/reports?period=last_week")
    area, value = last_column(page, "Time to resolve by day")
    area.tap()
    expect(value).to_be_visible()
    figure = page.get_by_role("figure", name="Time to resolve by day")
    figure.get_by_text("Show as table").tap()
    expect(figure.get_by_role("row").filter(has_text="2h")).to_be_visible()
    context.close()
