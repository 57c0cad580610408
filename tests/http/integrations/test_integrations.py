"""The pages of a project's integrations: access by role, and actions."""

import re

import pytest

from domain.access.roles import Role
from tests.support.accounts.people import alice, make_project, signed_in
from tests.support.accounts.team import browser_of
from tests.support.alerts.integration_pages import address, opened, words
from tests.support.alerts.senders import Endpoint, captured, connect
from tests.support.database.stored import list_stored_deliveries, list_stored_integrations
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, forms_in, submit

pytestmark = pytest.mark.one_database("sqlite")

PAGES = ("new", "{id}/configure", "{id}/credentials", "{id}/deliveries", "{id}/delete")
FOR_DEVELOPERS = ("", "{id}/test")


@pytest.mark.spec("H7")
def test_developers_only_send_test_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for page in PAGES:
        _, answer = opened(gatebell, endpoint, page, Role.DEVELOPER)
        assert answer.status_code == 403, page
        assert "need the Maintainer role" in answer.text
    for page in FOR_DEVELOPERS:
        _, answer = opened(gatebell, endpoint, page, Role.DEVELOPER)
        assert answer.status_code == 200
        assert endpoint.key not in answer.text
        assert "/configure" not in answer.text


@pytest.mark.spec("H1")
def test_the_list_shows_name_type_and_status(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, name="Night shift <b>")
    connect(gatebell, endpoint.project, kind="prometheus", name="Metrics", active=False)
    _, page = opened(gatebell, endpoint, "")
    lines = re.sub(r"<[^>]+>", " ", page.text.partition("<tbody")[2])
    rows = " ".join(lines.split())
    assert re.search(r"Night shift &lt;b&gt; HTTP Endpoint Active none yet", rows)
    assert re.search(r"Metrics Prometheus Alertmanager Off", rows)
    assert "<b>" not in page.text


@pytest.mark.both_databases
@pytest.mark.spec("H1", "H2", "H5")
@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_a_maintainer_adds_an_integration_and_gets_its_credentials(
    gatebell: LiveGatebell, kind: str
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    form = form_with(page, "name")
    given = {"type": kind, "name": "Night shift", "api_url": "http://placeholder.example"}
    answer = submit(browser, page, form, **given, active="y")
    assert answer.status_code == 302
    credentials = browser.get(gatebell.url + answer.headers["Location"])
    assert credentials.headers["Cache-Control"] == "no-store"
    (row,) = list_stored_integrations(gatebell, project)
    assert (row.type, row.name, row.active) == (kind, "Night shift", True)
    assert re.fullmatch("[0-9a-f]{16}", row.endpoint_identifier)
    url = f"{gatebell.url}/{project}/alerts/notify/night-shift/{row.endpoint_identifier}.json"
    assert url in credentials.text
    key = re.search(r"gbk-\w+", credentials.text)
    assert key is not None
    made = Endpoint(row.id, project, url, key[0], gatebell.url)
    body = captured("apprise.json" if kind == "http" else "17_prometheus_instance_down_2.json")
    assert made.post(body).status_code == 200


@pytest.mark.spec("H3")
def test_the_second_endpoint_of_a_type_needs_a_name(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    form = form_with(page, "name")
    refused = submit(browser, page, form, type="http", name=" ", active="y")
    assert refused.status_code == 422
    assert "Enter a name" in refused.text
    # The integration is the first of its type, so its type is used as its name.
    metrics = {"type": "prometheus", "name": "", "api_url": "http://prometheus.example.com"}
    assert submit(browser, page, form, **metrics, active="y").status_code == 302
    names = [row.name for row in list_stored_integrations(gatebell, endpoint.project)]
    assert names == ["Hook", "Prometheus Alertmanager"]


@pytest.mark.spec("H10")
def test_the_api_url_of_alertmanager_is_accepted_but_unused(
    gatebell: LiveGatebell,
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    assert "Any URL is accepted, such as http://prometheus.example.com" in page.text
    addresses = ("http://prometheus.example", "https://x.example/api?a=b", "")
    for number, api_url in enumerate(addresses):
        given = {"type": "prometheus", "name": f"M{number}", "api_url": api_url}
        assert submit(browser, page, form_with(page, "name"), **given, active="y").is_redirect
    rows = list_stored_integrations(gatebell, project)
    # The default is the same as in the API and on the command line; the URL is never requested.
    assert [row.api_url for row in rows] == [*addresses[:2], "http://prometheus.example.com"]
    configure = browser.get(address(gatebell, project, "{id}/configure", rows[0].id))
    assert "Deprecated and no longer used" in configure.text


@pytest.mark.spec("H10")
def test_an_http_endpoint_has_no_api_url_after_it_is_saved(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    submit(browser, page, form_with(page, "name"), type="http", name="Hook", active="y")
    (made,) = list_stored_integrations(gatebell, project)
    configure = browser.get(address(gatebell, project, "{id}/configure", made.id))
    assert submit(browser, configure, form_with(configure, "name"), name="Renamed").is_redirect
    (row,) = list_stored_integrations(gatebell, project)
    assert (row.name, row.api_url) == ("Renamed", None)


@pytest.mark.spec("H3")
def test_one_of_several_integrations_of_a_type_needs_a_name(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    form = form_with(page, "name")
    assert submit(browser, page, form, name="").status_code == 302
    assert "Name (optional)" in words(page.text)
    connect(gatebell, endpoint.project, name="Other")
    assert "Name (optional)" not in words(opened(gatebell, endpoint, "{id}/configure")[1].text)
    refused = submit(browser, page, form, name=" ")
    assert refused.status_code == 422
    assert "Enter a name" in refused.text
    names = [row.name for row in list_stored_integrations(gatebell, endpoint.project)]
    assert names == ["HTTP Endpoint", "Other"]


@pytest.mark.spec("H2", "H11")
def test_an_external_tool_has_a_url_and_no_receiver(
    gatebell: LiveGatebell,
) -> None:
    link = connect(gatebell, kind="external", name="Pager")
    browser, page = opened(gatebell, link, "{id}/configure")
    assert "https://pager.example" in page.text
    for tab in ("credentials", "setup", "test", "deliveries"):
        assert f"/{link.id}/{tab}" not in page.text
        answer = browser.get(address(gatebell, link.project, f"{{id}}/{tab}", link.id))
        assert answer.status_code == 404, tab
        assert link.key not in answer.text
    token = form_with(page, "name").value("csrf_token")
    for action in ("reset_key", "end_previous_key", "deliveries/replay"):
        url = address(gatebell, link.project, f"{{id}}/{action}", link.id)
        answer = browser.post(url, data={"csrf_token": token, "overlap": "now", "period": "1h"})
        assert answer.status_code == 404, action
    assert link.send().status_code == 404
    refused = submit(browser, page, form_with(page, "name"), api_url="")
    assert refused.status_code == 422
    assert "URL of the on-call tool" in refused.text


WRONG: tuple[dict[str, str], ...] = (
    {"type": "smoke"},
    {"type": ""},
    {"name": "x" * 101},
    {"name": "x\x00"},
    {"api_url": "javascript:alert(1)"},
    {"api_url": "https://" + "x" * 2000},
    {"type": "external", "api_url": ""},
    {"csrf_token": "forged"},
)


def test_invalid_integrations_are_rejected(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    for changes in WRONG:
        given = {"type": "http", "name": "Hook", "active": "y", **changes}
        answer = submit(browser, page, form_with(page, "name"), **given)
        assert answer.status_code in {400, 422}, changes
    assert list_stored_integrations(gatebell, project) == []


@pytest.mark.spec("H4")
def test_an_integration_is_turned_off_and_on_when_saved(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    form = form_with(page, "name")
    assert submit(browser, page, form, name="Renamed", active=None).status_code == 302
    assert endpoint.send().status_code == 403
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert (row.name, row.active) == ("Renamed", False)
    assert submit(browser, page, form, active="y").status_code == 302
    assert endpoint.send().status_code == 200


@pytest.mark.spec("H2", "H11")
def test_an_external_tool_and_an_endpoint_cannot_both_be_active(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    form = form_with(page, "name")
    link = {"type": "external", "name": "Pager", "api_url": "https://pager.example"}
    refused = submit(browser, page, form, **link, active="y")
    assert refused.status_code == 422
    assert "Turn off &#34;Hook&#34; first" in refused.text
    assert submit(browser, page, form, **link, active=None).status_code == 302
    configure = browser.get(address(gatebell, endpoint.project, "{id}/configure", endpoint.id))
    submit(browser, configure, form_with(configure, "name"), active=None)
    pager = list_stored_integrations(gatebell, endpoint.project)[1]
    page = browser.get(address(gatebell, endpoint.project, "{id}/configure", pager.id))
    assert submit(browser, page, form_with(page, "name"), active="y").status_code == 302
    again = submit(browser, configure, form_with(configure, "name"), active="y")
    assert again.status_code == 422
    assert "on-call tool is active" in again.text


@pytest.mark.spec("H7")
def test_integrations_and_deliveries_of_other_projects_are_not_found(
    gatebell: LiveGatebell,
) -> None:
    mine, other = connect(gatebell), connect(gatebell)
    other.send()
    (delivery,) = list_stored_deliveries(gatebell, other.project)
    browser = browser_of(gatebell, mine.project, Role.OWNER)
    for page in (*PAGES[1:], "{id}/test", f"{{id}}/deliveries/{delivery.id}"):
        url = address(gatebell, mine.project, page, other.id)
        assert browser.get(url).status_code == 404, page
    hidden = address(gatebell, mine.project, f"{{id}}/deliveries/{delivery.id}", mine.id)
    assert browser.get(hidden).status_code == 404


@pytest.mark.both_databases
def test_impossible_numbers_of_integrations_are_not_found(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.OWNER)
    for number in ("0", "2147483648", "9223372036854775807", "9" * 19, "9" * 40):
        for page in (f"{number}/configure", f"{endpoint.id}/deliveries/{number}"):
            assert browser.get(address(gatebell, endpoint.project, page)).status_code == 404, page


@pytest.mark.both_databases
@pytest.mark.spec("H7")
def test_a_deleted_integration_is_not_found_and_its_alerts_stay(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.send(title="Stays", note="kept whole")
    browser, page = opened(gatebell, endpoint, "{id}/delete")
    (form,) = (form for form in forms_in(page.text) if not form.action)
    assert submit(browser, page, form).status_code == 302
    assert endpoint.send().status_code == 404
    alert = signed_in(gatebell, alice(gatebell)).get(
        f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    )
    assert "kept whole" in alert.text
