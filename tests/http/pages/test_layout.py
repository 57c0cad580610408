"""The frame of every page: typeface, navigation, and the list of time zones."""

import re

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import make_project, make_user, open_browser
from tests.support.accounts.team import give_role
from tests.support.service.live import ROOT, LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

_FONT = re.compile(r"vendor/inter/([\w.-]+\.woff2)")


def test_the_preloaded_typeface_is_the_one_of_the_style_sheet(gatebell: LiveGatebell) -> None:
    page = gatebell.http().get(f"{gatebell.url}/users/sign_in").text
    (preloaded,) = _FONT.findall(page)
    style = (ROOT / "static" / "css" / "design_tokens.css").read_text(encoding="utf-8")
    assert preloaded in _FONT.findall(style)
    for name in _FONT.findall(style):
        font = gatebell.http().get(f"{gatebell.url}/static/vendor/inter/{name}")
        assert font.status_code == 200, name
        assert "max-age=31536000" in font.headers["Cache-Control"]


def test_a_project_has_one_breadcrumb_and_on_call_next_to_alerts(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    path = make_project(gatebell, person)
    give_role(gatebell, path, person, Role.OWNER)
    page = open_browser(gatebell, person).get(f"{gatebell.url}/{path}").text
    header, _, main = page.partition("</header>")
    assert 'aria-label="Breadcrumb"' in header
    assert 'aria-label="Breadcrumb"' not in main
    tabs = main[main.index('aria-label="Project"') :].partition("</nav>")[0]
    names = [" ".join(each.split()) for each in re.findall(r"<a [^>]*>(.*?)</a>", tabs, re.DOTALL)]
    assert names[:3] == ["Overview", "Alerts", "On-call"]
    assert names[-1] == "Container registry"


def test_a_stored_old_name_of_a_time_zone_is_kept(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    gatebell.cli("users", "change", person.username, "--time-zone", "Asia/Calcutta")
    browser = open_browser(gatebell, person)
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    offered = re.findall(r'<option value="([^"]+)">', page.text)
    assert "Asia/Kolkata" in offered
    assert "Asia/Calcutta" not in offered
    form = form_with(page, "time_zone")
    assert form.value("time_zone") == "Asia/Calcutta"
    assert submit(browser, page, form).status_code == 302
    saved = browser.get(f"{gatebell.url}/-/user_settings/profile")
    assert form_with(saved, "time_zone").value("time_zone") == "Asia/Calcutta"
    assert submit(browser, saved, form, time_zone="America/New York").status_code == 302


@pytest.mark.parametrize(("zone", "used"), [("Asia/Tokyo", "Asia/Tokyo"), ("Mars", "UTC")])
def test_pages_without_a_sign_in_use_the_time_zone_of_the_browser(
    gatebell: LiveGatebell, zone: str, used: str
) -> None:
    browser = requests.Session()
    answer = browser.get(f"{gatebell.url}/users/sign_in", cookies={"time_zone": zone})
    assert f'data-zone="{used}"' in answer.text
