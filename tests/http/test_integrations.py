"""The pages of a project's integrations: who sees them, and what they do."""

import json
import re

import pytest
import requests

from domain.accounts.roles import Role
from tests.html_forms import form_to, form_with, forms_in, submit
from tests.live import LiveGatebell
from tests.people import alice, make_project, signed_in
from tests.senders import Endpoint, captured, connect
from tests.stored import alerts_of, deliveries_of, integrations_of
from tests.team import browser_of

PAGES = ("new", "{id}/configure", "{id}/credentials", "{id}/deliveries", "{id}/delete")
FOR_DEVELOPERS = ("", "{id}/test")


def address(gatebell: LiveGatebell, project: str, page: str = "", number: int = 0) -> str:
    path = f"/{page.format(id=number)}" if page else ""
    return f"{gatebell.url}/{project}/-/settings/integrations{path}"


def opened(
    gatebell: LiveGatebell, endpoint: Endpoint, page: str, role: Role | None = Role.MAINTAINER
) -> tuple[requests.Session, requests.Response]:
    browser = browser_of(gatebell, endpoint.project, role)
    return browser, browser.get(address(gatebell, endpoint.project, page, endpoint.id))


@pytest.mark.spec("H7")
@pytest.mark.parametrize("role", [Role.OWNER, Role.MAINTAINER])
def test_owners_and_maintainers_see_every_page(gatebell: LiveGatebell, role: Role) -> None:
    endpoint = connect(gatebell)
    for page in (*FOR_DEVELOPERS, *PAGES):
        _, answer = opened(gatebell, endpoint, page, role)
        assert answer.status_code == 200, page


@pytest.mark.spec("H7")
def test_developers_only_send_test_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for page in PAGES:
        _, answer = opened(gatebell, endpoint, page, Role.DEVELOPER)
        assert answer.status_code == 403, page
        assert "needs the role Maintainer" in answer.text
    for page in FOR_DEVELOPERS:
        _, answer = opened(gatebell, endpoint, page, Role.DEVELOPER)
        assert answer.status_code == 200
        assert endpoint.key not in answer.text
        assert "/configure" not in answer.text


@pytest.mark.spec("H7")
@pytest.mark.parametrize("role", [Role.REPORTER, Role.PLANNER, Role.GUEST])
def test_lower_roles_see_no_page(gatebell: LiveGatebell, role: Role) -> None:
    endpoint = connect(gatebell)
    for page in (*FOR_DEVELOPERS, *PAGES):
        _, answer = opened(gatebell, endpoint, page, role)
        assert answer.status_code == 403, page


@pytest.mark.spec("H7")
def test_strangers_do_not_learn_that_the_project_exists(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for page in (*FOR_DEVELOPERS, *PAGES):
        _, answer = opened(gatebell, endpoint, page, None)
        assert answer.status_code == 404, page
        nobody = gatebell.http().get(
            address(gatebell, endpoint.project, page, endpoint.id), allow_redirects=False
        )
        assert nobody.status_code == 302
        assert "/users/sign_in" in nobody.headers["Location"]


@pytest.mark.spec("H7")
def test_developers_cannot_change_anything_by_hand_either(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test", Role.DEVELOPER)
    token = {"csrf_token": form_with(page, "payload").value("csrf_token")}
    for action in ("new", "{id}/configure", "{id}/reset_key", "{id}/delete"):
        url = address(gatebell, endpoint.project, action, endpoint.id)
        assert browser.post(url, data=token).status_code == 403, action
    (row,) = integrations_of(gatebell, endpoint.project)
    assert endpoint.send().status_code == 200
    assert (row.name, row.active) == ("Hook", True)


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


@pytest.mark.spec("H1", "H2", "H5")
@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_a_maintainer_adds_an_integration_and_gets_its_credentials(
    gatebell: LiveGatebell, kind: str
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    form = form_with(page, "name")
    answer = submit(browser, page, form, type=kind, name="Night shift", active="y")
    assert answer.status_code == 302
    credentials = browser.get(gatebell.url + answer.headers["Location"])
    assert credentials.headers["Cache-Control"] == "no-store"
    (row,) = integrations_of(gatebell, project)
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
    assert "Give it a name" in refused.text
    # It is the first of its type, so the type will do as a name.
    assert submit(browser, page, form, type="prometheus", name="", active="y").status_code == 302
    names = [row.name for row in integrations_of(gatebell, endpoint.project)]
    assert names == ["Hook", "Prometheus Alertmanager"]


@pytest.mark.spec("H10")
@pytest.mark.parametrize("api_url", ["", "http://prometheus.example", "https://x.example/api?a=b"])
def test_the_metrics_type_takes_any_api_address(gatebell: LiveGatebell, api_url: str) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    form = form_with(page, "name")
    answer = submit(browser, page, form, type="prometheus", name="M", api_url=api_url, active="y")
    assert answer.status_code == 302
    (row,) = integrations_of(gatebell, project)
    assert (row.api_url or "") == api_url


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "smoke"},
        {"type": ""},
        {"name": "x" * 101},
        {"name": "x\x00"},
        {"api_url": "javascript:alert(1)"},
        {"api_url": "https://" + "x" * 2000},
        {"type": "external", "api_url": ""},
        {"csrf_token": "forged"},
    ],
)
def test_what_no_integration_can_be_is_refused(
    gatebell: LiveGatebell, changes: dict[str, str]
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    given = {"type": "http", "name": "Hook", "active": "y", **changes}
    answer = submit(browser, page, form_with(page, "name"), **given)
    assert answer.status_code in {400, 422}
    assert integrations_of(gatebell, project) == []


@pytest.mark.spec("H4")
def test_the_toggle_turns_it_off_and_on_when_saved(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    form = form_with(page, "name")
    assert submit(browser, page, form, name="Renamed", active=None).status_code == 302
    assert endpoint.send().status_code == 403
    (row,) = integrations_of(gatebell, endpoint.project)
    assert (row.name, row.active) == ("Renamed", False)
    assert submit(browser, page, form, active="y").status_code == 302
    assert endpoint.send().status_code == 200


@pytest.mark.spec("H2", "H11")
def test_the_external_link_is_active_alone(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    form = form_with(page, "name")
    link = {"type": "external", "name": "Pager", "api_url": "https://pager.example"}
    refused = submit(browser, page, form, **link, active="y")
    assert refused.status_code == 422
    assert "turn off “Hook” first" in refused.text
    assert submit(browser, page, form, **link, active=None).status_code == 302
    configure = browser.get(address(gatebell, endpoint.project, "{id}/configure", endpoint.id))
    submit(browser, configure, form_with(configure, "name"), active=None)
    pager = integrations_of(gatebell, endpoint.project)[1]
    page = browser.get(address(gatebell, endpoint.project, "{id}/configure", pager.id))
    assert submit(browser, page, form_with(page, "name"), active="y").status_code == 302
    again = submit(browser, configure, form_with(configure, "name"), active="y")
    assert again.status_code == 422
    assert "on-call tool is active" in again.text


@pytest.mark.spec("H5")
def test_a_reset_key_replaces_the_old_one_at_once(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/credentials")
    assert endpoint.key in page.text
    assert endpoint.url in page.text
    answer = submit(browser, page, form_to(page, "/reset_key"))
    assert answer.status_code == 302
    again = browser.get(gatebell.url + answer.headers["Location"])
    assert endpoint.key not in again.text
    assert endpoint.send().status_code == 401
    key = re.search(r"gbk-\w+", again.text)
    assert key is not None
    renewed = Endpoint(endpoint.id, endpoint.project, endpoint.url, key[0], gatebell.url)
    assert renewed.send().status_code == 200


@pytest.mark.spec("H6")
@pytest.mark.parametrize("role", [Role.MAINTAINER, Role.DEVELOPER])
@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_the_test_alert_that_the_page_offers_is_a_good_one(
    gatebell: LiveGatebell, kind: str, role: Role
) -> None:
    endpoint = connect(gatebell, kind=kind)
    browser, page = opened(gatebell, endpoint, "{id}/test", role)
    form = form_with(page, "payload")
    result = submit(browser, page, form)
    assert result.status_code == 200
    assert "The test alert arrived" in result.text
    (alert,) = alerts_of(gatebell, endpoint.project)
    assert alert.title in result.text
    assert f"/{endpoint.project}/-/alerts/1" in result.text
    (delivery,) = deliveries_of(gatebell, endpoint.project)
    assert delivery.is_test
    assert delivery.sender.startswith(role.name.lower())


@pytest.mark.spec("H6")
@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ("", "Enter a JSON object."),
        ("{", "The body is not JSON"),
        ("[]", "The body is an array"),
        ("NaN", "NaN is no JSON number"),
        ('{"a":' * 200 + "1" + "}" * 200, "nested deeper than 100 levels"),
    ],
)
def test_a_test_alert_that_is_none_says_why(
    gatebell: LiveGatebell, payload: str, sentence: str
) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    answer = submit(browser, page, form_with(page, "payload"), payload=payload)
    assert answer.status_code == 422
    assert sentence in answer.text
    assert alerts_of(gatebell, endpoint.project) == []


@pytest.mark.spec("H4", "H6")
def test_an_integration_that_is_off_sends_no_test_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, active=False)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    answer = submit(browser, page, form_with(page, "payload"), payload="{}")
    assert answer.status_code == 422
    assert "turned off" in answer.text
    assert alerts_of(gatebell, endpoint.project) == []


@pytest.mark.spec("H6")
def test_what_a_test_alert_shows_is_escaped(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    payload = json.dumps({"title": "</textarea><script>1</script>", "severity": "<i>x</i>"})
    answer = submit(browser, page, form_with(page, "payload"), payload=payload)
    assert answer.status_code == 200
    assert "<script>1" not in answer.text
    assert "<i>x" not in answer.text


def test_the_delivery_log_tells_what_became_of_each(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(captured("05_truncated_max_alerts_2_of_5.json"))
    endpoint.post(b'{"title": "<script>1</script>"}')
    endpoint.post(b"{}", Authorization="Bearer wrong")
    browser, page = opened(gatebell, endpoint, "{id}/deliveries")
    assert page.status_code == 200
    for text in ("Accepted", "2 opened", "3 alerts left out", "422", "401", "key is missing or"):
        assert text in page.text
    truncated, refused, stranger = deliveries_of(gatebell, endpoint.project)
    shown = []
    for delivery in (truncated, refused, stranger):
        url = address(gatebell, endpoint.project, f"{{id}}/deliveries/{delivery.id}", endpoint.id)
        answer = browser.get(url)
        assert answer.status_code == 200
        shown.append(answer.text)
    assert "truncatedAlerts" in shown[0]
    assert "&lt;script&gt;1" in shown[1]
    assert "<script>1" not in shown[1]
    assert "body was not kept" in shown[2]


def test_the_delivery_log_has_pages(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for number in range(23):
        endpoint.send(title=str(number))
    browser, first = opened(gatebell, endpoint, "{id}/deliveries")
    assert first.text.count("Accepted") == 20
    older = re.search(r'href="([^"]*)" rel="next"', first.text)
    assert older is not None
    second = browser.get(gatebell.url + older[1].replace("&amp;", "&"))
    assert second.text.count("Accepted") == 3


@pytest.mark.parametrize("cursor", ["-1", "1e3", "x", "9" * 30, "٣", "1 OR 1=1", "%00"])
def test_a_forged_cursor_is_refused(gatebell: LiveGatebell, cursor: str) -> None:
    endpoint = connect(gatebell)
    _, answer = opened(gatebell, endpoint, f"{{id}}/deliveries?before={cursor}")
    assert answer.status_code == 422
    assert "Traceback" not in answer.text


@pytest.mark.spec("H7")
def test_integrations_and_deliveries_of_other_projects_are_not_found(
    gatebell: LiveGatebell,
) -> None:
    mine, other = connect(gatebell), connect(gatebell)
    other.send()
    (delivery,) = deliveries_of(gatebell, other.project)
    browser = browser_of(gatebell, mine.project, Role.OWNER)
    for page in (*PAGES[1:], "{id}/test", f"{{id}}/deliveries/{delivery.id}"):
        url = address(gatebell, mine.project, page, other.id)
        assert browser.get(url).status_code == 404, page
    hidden = address(gatebell, mine.project, f"{{id}}/deliveries/{delivery.id}", mine.id)
    assert browser.get(hidden).status_code == 404


@pytest.mark.parametrize("number", ["0", "2147483648", "9223372036854775807", "9" * 19, "9" * 40])
def test_numbers_that_no_row_can_have_are_not_found(gatebell: LiveGatebell, number: str) -> None:
    endpoint = connect(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.OWNER)
    for page in (f"{number}/configure", f"{endpoint.id}/deliveries/{number}"):
        assert browser.get(address(gatebell, endpoint.project, page)).status_code == 404, page


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
