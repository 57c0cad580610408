"""General settings of a project: name, description, visibility and features."""

import pytest

from domain.access.roles import Role
from tests.support.accounts.people import alice, make_project, signed_in
from tests.support.accounts.team import browser_of
from tests.support.alerts.senders import connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")
DESCRIPTION = "Sells <b>things</b>.\nSince 1999."


@pytest.mark.long
@pytest.mark.both_databases
def test_a_maintainer_changes_name_and_description(
    gatebell: LiveGatebell,
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(f"{gatebell.url}/{project}/-/settings/general")
    form = form_with(page, "monitor_access_level")
    assert (form.value("name"), form.value("description")) == ("shop", "")
    answer = submit(
        browser, page, form, name=" Web shop ", description=DESCRIPTION.replace("\n", "\r\n")
    )
    assert answer.status_code == 302
    shown = browser_of(gatebell, project, Role.GUEST).get(f"{gatebell.url}/{project}").text
    assert "<h1><bdi>Web shop</bdi></h1>" in shown
    assert "Sells &lt;b&gt;things&lt;/b&gt;.\nSince 1999." in shown
    event = list_events_with_subject(gatebell, project)[0]
    assert (event.kind, event.details["changed"]) == ("project.changed", "name description")
    # A save without changes writes no event.
    page = browser.get(page.url)
    assert submit(browser, page, form_with(page, "monitor_access_level")).status_code == 302
    assert "Nothing was changed." in browser.get(page.url).text
    assert len(list_events_with_subject(gatebell, project)) == 1


@pytest.mark.long
@pytest.mark.both_databases
def test_a_turned_off_feature_has_no_pages_and_rejects_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    url = f"{gatebell.url}/{endpoint.project}"
    page = browser.get(f"{url}/-/settings/general")
    off = {"monitor_access_level": "disabled", "environments_access_level": "disabled"}
    assert submit(browser, page, form_with(page, "monitor_access_level"), **off).status_code == 302
    overview = browser.get(url).text
    assert "Monitoring is turned off" in overview
    for path in ("/-/alerts", "/-/settings/integrations", "/-/environments"):
        assert f'href="/{endpoint.project}{path}"' not in overview
        assert browser.get(f"{url}{path}").status_code == 403
    assert endpoint.send(title="x").status_code == 403
    page = browser.get(f"{url}/-/settings/general")
    form = form_with(page, "monitor_access_level")
    assert {name: form.value(name) for name in off} == off
    on = {"monitor_access_level": "enabled", "environments_access_level": "private"}
    assert submit(browser, page, form, **on).status_code == 302
    assert endpoint.send(title="x").status_code == 200
    assert browser.get(f"{url}/-/alerts").status_code == 200


@pytest.mark.long
def test_the_form_keeps_valid_values_and_shows_errors(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{project}/-/settings/general")
    for field, value in (
        ("name", "  "),
        ("name", "x" * 101),
        ("name", "a\x01b"),
        ("description", "x" * 2001),
        ("description", "\x00"),
        ("monitor_access_level", "sometimes"),
        ("visibility", "secret"),
    ):
        given = {"name": "Kept", "description": "kept too", field: value}
        answer = submit(browser, page, form_with(page, "monitor_access_level"), **given)
        assert answer.status_code == 422, given
        kept = form_with(answer, "description")
        if field != "name":
            assert kept.value("name") == "Kept"
        if field == "name":
            assert kept.value("description") == "kept too"
        shown = f'id="{field}-error"' in answer.text or "has-error" in answer.text
        assert shown, given
    assert list_events_with_subject(gatebell, project) == []


def test_an_archived_project_shows_no_settings_form(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{project}/-/settings/general")
    form = form_with(page, "monitor_access_level")
    browser.post(
        f"{gatebell.url}/{project}/-/settings/archive",
        data={"csrf_token": form.value("csrf_token")},
    )
    archived = browser.get(page.url).text
    assert 'name="visibility"' not in archived
    assert "Unarchive project" in archived
    assert submit(browser, page, form, name="Other").status_code == 403
