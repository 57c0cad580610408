"""Texts of pages that depend on numbers and on the data."""

import re

import pytest

from domain.access.roles import Role
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_user, signed_in
from tests.support.accounts.team import browser_of
from tests.support.alerts.integration_pages import words
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from web.pages.templating import choose_noun_form

pytestmark = pytest.mark.one_database("sqlite")
_TOTAL = re.compile(r"<strong>([0-9,+]+)</strong><span>([a-z ]+?)(?: in [0-9,]+ ([a-z]+))?</span>")


def test_a_noun_follows_its_number() -> None:
    assert [choose_noun_form(each, "alert") for each in (0, 1, 2)] == ["alerts", "alert", "alerts"]
    assert [choose_noun_form(each, "person", "people") for each in (1, 2)] == ["person", "people"]


def test_totals_of_the_administration_have_the_right_nouns(gatebell: LiveGatebell) -> None:
    page = signed_in(gatebell, get_shared_administrator(gatebell)).get(f"{gatebell.url}/admin").text
    found = {plural: number for number, plural, _ in _TOTAL.findall(page)}
    assert len(found) == 5
    for what, number in found.items():
        assert (number == "1") == (what != "people" and not what.endswith("s")), (number, what)


def test_the_allowed_values_of_settings_show_dates_unchanged(gatebell: LiveGatebell) -> None:
    # The pages of settings show the same sentence.
    date = gatebell.cli("settings", "show", "second_factor_required_from")["allowed"]
    assert date.startswith("A date such as 2027-01-31")
    seconds = gatebell.cli("settings", "show", "access_token_lifetime_seconds")["allowed"]
    assert re.search(r"to [0-9]{1,3},[0-9]{3}", seconds), seconds


def test_the_page_of_a_missing_alert_links_to_the_alerts_of_its_project(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    at = f"/{endpoint.project}/-/alerts"
    page = browser.get(f"{gatebell.url}{at}/99")
    assert page.status_code == 404
    assert f'href="{at}">Show all alerts</a>' in page.text
    # A user without access gets no link to a list that is not visible either.
    stranger = signed_in(gatebell, make_user(gatebell)).get(f"{gatebell.url}{at}/99")
    assert stranger.status_code == 404
    assert "Show all" not in words(stranger.text)
