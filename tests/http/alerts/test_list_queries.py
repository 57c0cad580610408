"""Rejects unknown parameters and values of lists, so that a typo never lists everything."""

from functools import cache
from urllib.parse import quote

import gitlab
import pytest
import requests
from flask import Flask

from domain.access.roles import Role
from domain.core.database.pagination import KeysetPage
from tests.support.accounts.administration import (
    get_administrator_browser,
    get_shared_administrator,
)
from tests.support.accounts.people import alice, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import browser_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell
from web.pages.list_query import build_page_links
from web.pages.templating import format_code_spans

pytestmark = pytest.mark.one_database("sqlite")

API_LISTS = (
    "/projects/{project}/alert_management_alerts",
    "/projects/{project}/environments",
    "/projects/{project}/access_tokens",
    "/groups/{group}/access_tokens",
    "/personal_access_tokens",
    "/applications",
    "/audit_events",
)
PAGES = (
    "/{project}/-/alerts",
    "/{project}/-/alerts/export.csv",
    "/{project}/-/alerts/export.json",
    "/{project}/-/alerts/1",
    "/{project}/-/environments",
    "/{project}/-/environments/prod",
    "/{project}/-/settings/integrations/{id}/deliveries",
    "/{project}/-/settings/access_tokens",
    "/groups/{group}/-/access_tokens",
    "/-/user_settings/access_tokens",
    "/-/user_settings/activity",
    "/-/alerts/export.csv",
    "/admin/users",
    "/admin/applications",
    "/admin/audit",
)


@cache
def endpoint_of(gatebell: LiveGatebell) -> Endpoint:
    """Return an endpoint whose project has two alerts."""
    endpoint = connect(gatebell)
    endpoint.accepted(title="a", severity="low", platform_environment_name="prod")
    endpoint.accepted(title="b", severity="high")
    return endpoint


@cache
def token_of(gatebell: LiveGatebell) -> str:
    """Return the token of an administrator, who may read every list."""
    return make_token(gatebell, get_shared_administrator(gatebell)).clear


def filled(endpoint: Endpoint, path: str, *, is_quoted: bool) -> str:
    project = quote(endpoint.project, safe="" if is_quoted else "/")
    group = endpoint.project.rpartition("/")[0]
    return path.format(project=project, group=quote(group, safe=""), id=endpoint.id)


def api(gatebell: LiveGatebell, path: str, query: str = "") -> requests.Response:
    address = filled(endpoint_of(gatebell), path, is_quoted=True)
    return machine(gatebell).get(
        f"{gatebell.url}/api/v4{address}?{query}",
        headers={"PRIVATE-TOKEN": token_of(gatebell)},
    )


def page(gatebell: LiveGatebell, path: str, query: str = "") -> requests.Response:
    endpoint = endpoint_of(gatebell)
    own = path.startswith(("/admin", "/-/"))
    browser = get_administrator_browser(gatebell) if own else browser_of_owner(gatebell)
    return browser.get(f"{gatebell.url}{filled(endpoint, path, is_quoted=False)}?{query}")


@cache
def browser_of_owner(gatebell: LiveGatebell) -> requests.Session:
    return signed_in(gatebell, alice(gatebell))


@pytest.mark.parametrize("path", PAGES)
def test_pages_name_unknown_parameters_of_lists(gatebell: LiveGatebell, path: str) -> None:
    assert page(gatebell, path).status_code == 200
    answer = page(gatebell, path, "sevrity=critical")
    assert answer.status_code == 400
    if "export.json" not in path:  # An address with .json answers with JSON.
        assert answer.headers["Content-Type"].startswith("text/html")
        plain = filled(endpoint_of(gatebell), path, is_quoted=False)
        assert f'href="{plain}">Clear filters' in answer.text
        assert "<code>sevrity</code> is not a known parameter. Known parameters: " in answer.text
    else:
        assert "`sevrity` is not a known parameter. Known parameters: " in answer.text


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("status=nope", "`status` must be one of open, triggered, acknowledged, resolved, "),
        ("severity=crit", "`severity` must be one of critical, high, medium, low, info, unknown."),
        ("severity=CRITICAL", "`severity` must be one of "),
        ("sort=x", "`sort` must be one of started, oldest, severity, last_event, events."),
        ("integration=x", "`integration` must be a whole number."),
        ("integration=99999999999999999999", "`integration` must be "),
        ("search=" + "x" * 201, "`search` can have at most 200 characters."),
        ("service=" + "x" * 256, "`service` can have at most 255 characters."),
        ("status=open&status=all", "`status` can be given only once."),
    ],
)
def test_an_invalid_filter_of_alerts_is_rejected_with_the_valid_values(
    gatebell: LiveGatebell, query: str, error: str
) -> None:
    refused = api(gatebell, API_LISTS[0], query)
    assert (refused.status_code, refused.json()["error"][: len(error)]) == (400, error)
    shown = page(gatebell, PAGES[0], query)
    assert shown.status_code == 400
    assert str(format_code_spans(error)) in shown.text


def test_a_keyset_list_rejects_page_numbers(gatebell: LiveGatebell) -> None:
    for query in ("page=2", "page=-1", "page=x", "pagination=offset"):
        answer = api(gatebell, API_LISTS[0], query)
        assert answer.status_code == 400, query
        assert answer.json()["error"].startswith(f"`{query.partition('=')[0]}`")


def test_a_numbered_list_rejects_invalid_pagination(gatebell: LiveGatebell) -> None:
    for path in API_LISTS[1:]:
        for query in ("pagination=x", "order_by=name", "sort=sideways", "page=-1"):
            answer = api(gatebell, path, query)
            assert answer.status_code == 400, (path, query)
            assert answer.json()["error"].startswith(f"`{query.partition('=')[0]}`")
        # Client libraries send these parameters with every list.
        by_key = api(gatebell, path, "pagination=keyset&order_by=id&per_page=50")
        assert by_key.status_code == 200, path


def test_pages_name_parameters_with_invalid_values(gatebell: LiveGatebell) -> None:
    for path, query in (
        ("/admin/users", "group=robots"),
        ("/admin/applications", "of=me"),
        ("/-/user_settings/access_tokens", "state=dead"),
        ("/groups/{group}/-/access_tokens", "state=dead"),
        ("/admin/users", "search=" + "x" * 201),
    ):
        answer = page(gatebell, path, query)
        assert answer.status_code == 400, (path, query)
        assert f"<code>{query.partition('=')[0]}</code> " in answer.text


@pytest.mark.long
@pytest.mark.both_databases
def test_a_client_library_with_keyset_pagination_reads_a_numbered_list(
    gatebell: LiveGatebell,
) -> None:
    person = alice(gatebell)
    made = {make_token(gatebell, person).id for _ in range(3)}
    token = make_token(gatebell, person).clear
    library = gitlab.Gitlab(
        gatebell.url, private_token=token, pagination="keyset", order_by="id", per_page=2
    )
    library.session.trust_env = False  # The test connects without a proxy.
    try:
        found = [each.id for each in library.personal_access_tokens.list(iterator=True)]
    finally:
        library.session.close()
    assert made <= set(found)
    assert len(found) == len(set(found))


def test_an_unknown_name_is_shown_as_text_and_cut(gatebell: LiveGatebell) -> None:
    answer = page(gatebell, PAGES[0], quote("<script>alert(1)</script>") + "x" * 500 + "=1")
    assert answer.status_code == 400
    assert "<script>alert" not in answer.text
    assert "x" * 100 not in answer.text


@pytest.mark.long
def test_pages_without_lists_accept_unknown_parameters(gatebell: LiveGatebell) -> None:
    endpoint = endpoint_of(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    assert browser.get(f"{gatebell.url}/?utm_source=letter").status_code == 200
    assert browser.get(f"{gatebell.url}/{endpoint.project}?utm_source=letter").status_code == 200


def test_a_query_parameter_does_not_replace_a_part_of_the_path(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A page could declare parameters with these names.
    def listed(project_path: str) -> str:
        del project_path
        return build_page_links(KeysetPage(items=(), next_before=7)).next_url or ""

    monkeypatch.setitem(app.view_functions, "alerts.index", listed)
    for query in ("endpoint=x", "project_path=other%2Fshop", "values=1", "iid=2"):
        answer = app.test_client().get(f"/acme/shop/-/alerts?{query}&search=a%26b&before=3")
        assert answer.status_code == 200
        assert answer.text == f"/acme/shop/-/alerts?{query}&search=a%26b&before=7"
