"""Tests of the whole product under a base path, with proxies that keep or remove the path."""

import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import gitlab
import pytest
import requests

from tests.stories.third_parties import Addresses, AuthlibWithBasic, Browser
from tests.support.accounts.people import Person, alice, bob, make_application, make_user, sign_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import Endpoint, connect
from tests.support.oauth.device_wire import approve, codes, poll
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell, NewService
from tests.support.service.path_proxy import PATH, PathProxy, running_proxy
from tests.support.wire.html_forms import form_to, form_with, submit

#: The proxy affects how paths are read, not which pages they lead to.
KEPT = pytest.mark.parametrize("proxy", ["kept"], indirect=True)
TAKEN_AWAY = pytest.mark.parametrize("proxy", ["taken away"], indirect=True)
#: Maximum number of opened pages, enough for every kind of page.
_MOST_PAGES = 400
#: Parts of a URL that do not make another kind of page, such as numbers and parameter values.
_ONE_OF_MANY = re.compile(
    r"\d+|(?<==)[^&]+|(?<=/help/docs/)[^?]+|(?<=/help/guides/)[^?]+|(?<=/help/api/)[^?]+|(?<=/new/tools/)[^?]+"
)


@pytest.fixture(scope="module", params=["kept", "taken away"])
def proxy(request: pytest.FixtureRequest) -> Iterator[PathProxy]:
    with running_proxy(keeps_path=request.param == "kept") as proxy:
        yield proxy


@pytest.fixture(scope="module")
def below(proxy: PathProxy, new_service: NewService) -> Iterator[LiveGatebell]:
    """Run the service with the proxy's URL, so that every request goes through the proxy."""
    live = new_service("sqlite", only="web", WEB_CONCURRENCY="1", BASE_URL=proxy.url)
    proxy.target, live.url = live.port, proxy.url
    live.start()
    yield live
    assert live.stop() == 0, live.log_text()
    assert proxy.strays == []


class _Links(HTMLParser):
    """Collects everything in a page that makes a browser send a request."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: set[str] = set()
        self.parts: set[str] = set()
        self.forms: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self.pages.add(given["href"])
        elif tag == "form":
            self.forms.add(given.get("action", ""))
        elif tag in {"link", "use", "script", "img"}:
            self.parts.update(given[name] for name in ("href", "src") if name in given)
        self.forms.update(
            value
            for name, value in given.items()
            if name.startswith("data-") and value.startswith("/")
        )


def assert_below(proxy: PathProxy, base: str, address: str) -> str:
    """Resolve a link of a page, and check that it stays below the base path."""
    whole = urljoin(base, address).partition("#")[0]
    inside, path = urlsplit(whole), urlsplit(whole).path
    if inside.netloc == urlsplit(proxy.url).netloc:
        assert path == PATH or path.startswith(f"{PATH}/"), f"{base} leads to {address}"
        assert not path.startswith(f"{PATH}{PATH}"), f"{base} leads to {address}"
    return whole


def walk(browser: requests.Session, proxy: PathProxy, most: int = _MOST_PAGES) -> dict[str, int]:
    """Open all pages that links lead to, and return their addresses and statuses."""
    seen: dict[str, int] = {}
    known: set[str] = set()
    todo, parts = [f"{proxy.url}/"], set()
    while todo and len(seen) < most:
        address = todo.pop(0)
        answer = browser.get(address)
        seen[address] = answer.status_code
        found = links_in(answer, proxy)
        parts |= found.parts
        fresh = {_ONE_OF_MANY.sub("1", page): page for page in sorted(found.pages)}
        new = [fresh[kind] for kind in sorted(fresh.keys() - known)]
        todo += [page for page in new if page.startswith(proxy.url)]
        known |= fresh.keys()
    assert not todo or most < _MOST_PAGES
    return seen | {part: browser.get(part).status_code for part in parts}


def links_in(answer: requests.Response, proxy: PathProxy) -> _Links:
    """Return the links of a page, after checking its redirects."""
    found = _Links()
    for hop in answer.history:
        assert_below(proxy, hop.url, hop.headers["Location"])
    if answer.headers["Content-Type"].startswith("text/html"):
        found.feed(answer.text)
    for kind in ("pages", "parts", "forms"):
        whole = {assert_below(proxy, answer.url, each) for each in getattr(found, kind)}
        setattr(found, kind, {each for each in whole if each.startswith("http")})
    return found


def with_everything(below: LiveGatebell, person: Person) -> Endpoint:
    """Give a user alerts, tokens and an application, so that pages have content."""
    endpoint = connect(below)
    endpoint.accepted(title="a", platform_environment_name="prod", runbook="x")
    for number in range(21):  # The list has a second page.
        endpoint.accepted(title=f"b{number}")
    endpoint.post(b"{")
    make_application(below, person)
    make_token(below, person)
    return endpoint


@pytest.mark.long
@KEPT
def test_all_links_forms_and_files_stay_below_the_path(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    owner = alice(below)
    endpoint = with_everything(below, owner)
    seen = walk(sign_in(below, owner), proxy)
    paths = {urlsplit(address).path for address in seen}
    assert any(re.fullmatch(rf"{PATH}/{endpoint.project}/-/alerts/\d+", path) for path in paths)
    assert any(path.startswith(f"{PATH}/static/css/") for path in paths)
    assert {address: status for address, status in seen.items() if status != 200} == {}


@pytest.mark.long
@TAKEN_AWAY
def test_links_stay_below_a_path_that_the_proxy_removes(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    connect(below).accepted(title="a")
    seen = walk(sign_in(below, alice(below)), proxy, most=15)
    assert any(urlsplit(address).path.startswith(f"{PATH}/static/css/") for address in seen)
    assert {address: status for address, status in seen.items() if status != 200} == {}


@pytest.mark.long
@KEPT
def test_all_administration_pages_stay_below_the_path(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    seen = walk(sign_in(below, make_user(below, name="root", admin=True)), proxy)
    assert any(f"{PATH}/admin/" in address for address in seen)
    assert {address: status for address, status in seen.items() if status != 200} == {}


@pytest.mark.long
def test_a_user_returns_to_the_requested_page_after_sign_in(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    browser, person = below.http(), alice(below)
    page = browser.get(f"{proxy.url}/-/user_settings/access_tokens?state=inactive")
    assert urlsplit(page.url).path == f"{PATH}/users/sign_in"
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=person.username, password=person.password)
    assert answer.headers["Location"] == f"{PATH}/-/user_settings/access_tokens?state=inactive"
    assert {cookie.path for cookie in browser.cookies} == {PATH}
    private = below.http().get(f"{proxy.url}/acme/shop", allow_redirects=False)
    assert private.headers["Location"] == f"{PATH}/users/sign_in?next={PATH}/acme/shop"


@pytest.mark.long
@KEPT
def test_the_sign_in_does_not_redirect_outside_the_path(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    person, led = alice(below), {}
    others = ("/", "/other", "//evil.example", "/gateway", "/gate/../other", "/gate/%2e%2e/other")
    for target in others:
        browser = below.http()
        page = browser.get(f"{proxy.url}/users/sign_in", params={"next": target})
        form = form_with(page, "password")
        answer = submit(browser, page, form, login=person.username, password=person.password)
        led[target] = answer.headers["Location"]
    assert led == dict.fromkeys(others, f"{PATH}/")


@pytest.mark.long
@TAKEN_AWAY
def test_a_project_and_an_integration_can_be_created(below: LiveGatebell, proxy: PathProxy) -> None:
    browser = sign_in(below, alice(below))

    def send(page_path: str, field: str, /, **values: str) -> requests.Response:
        page = browser.get(f"{proxy.url}{page_path}")
        answer = submit(browser, page, form_with(page, field), **values)
        assert answer.status_code == 302, answer.text
        return browser.get(assert_below(proxy, page.url, answer.headers["Location"]))

    send("/groups/new", "path", path="below")
    send("/projects/new", "name", group="below", name="shop")
    page = send("/below/shop/-/settings/integrations/new", "type", type="http", name="Hook")
    url = re.search(rf"{re.escape(proxy.url)}/below/shop/alerts/notify/[^\s\"&<]+", page.text)
    key = re.search(r"gbk-[A-Za-z0-9_-]+", page.text)
    assert url is not None, page.text
    assert key is not None
    answer = machine(below).post(
        unescape(url[0]), json={"title": "Down"}, headers={"Authorization": f"Bearer {key[0]}"}
    )
    assert answer.json() == [{"iid": 1, "title": "Down"}]
    shown = browser.get(f"{proxy.url}/below/shop/-/alerts/1")
    done = submit(browser, shown, form_to(shown, "/status"), status="resolved")
    assert assert_below(proxy, shown.url, done.headers["Location"]).startswith(proxy.url)


@pytest.mark.long
@TAKEN_AWAY
def test_the_base_path_is_not_allowed_as_a_group_path(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    browser = sign_in(below, alice(below))
    page = browser.get(f"{proxy.url}/groups/new")
    answer = submit(browser, page, form_with(page, "path"), path=PATH.strip("/"))
    assert answer.status_code == 422


@pytest.mark.long
def test_a_client_discovers_all_endpoints_from_the_issuer(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    # In RFC 8414 (section 3.1), the path is between the host and the issuer's path.
    host = proxy.url.removesuffix(PATH)
    document = machine(below).get(f"{host}/.well-known/oauth-authorization-server{PATH}").json()
    assert document["issuer"] == proxy.url
    for ending in ("oauth-authorization-server", "openid-configuration"):
        after = machine(below).get(f"{proxy.url}/.well-known/{ending}")
        between = machine(below).get(f"{host}/.well-known/{ending}{PATH}")
        assert after.json().items() >= document.items()
        assert after.json() == between.json()
        assert machine(below).get(f"{host}/.well-known/{ending}/other").status_code == 404
    for name, value in document.items():
        assert not name.endswith(("_endpoint", "_uri")) or value.startswith(f"{proxy.url}/")
    resource = machine(below).get(f"{host}/.well-known/oauth-protected-resource{PATH}/api/v4")
    assert resource.json()["resource"] == f"{proxy.url}/api/v4"
    challenge = machine(below).get(f"{proxy.url}/api/v4/user").headers["WWW-Authenticate"]
    told = re.search(r'resource_metadata="([^"]+)"', challenge)
    assert told is not None
    assert machine(below).get(told[1]).json() == resource.json()


@KEPT
def test_an_application_can_get_and_use_a_token(below: LiveGatebell, proxy: PathProxy) -> None:
    client = make_application(below, bob(below), **AuthlibWithBasic.registration)
    third_party = AuthlibWithBasic(client, Addresses.written_down(below))
    browser = Browser(below.http(), make_user(below, name="charlie"))
    with third_party.session:
        third_party.take(browser.walk(third_party.authorization_url()))
        third_party.refresh()
        user = third_party.get(f"{proxy.url}/api/v4/user").json()
        assert third_party.introspect().json()["iss"] == proxy.url
        third_party.revoke()
    assert browser.seen == ["sign in", "consent"]
    assert user["web_url"] == f"{proxy.url}/-/users/{browser.person.username}"


@pytest.mark.long
@TAKEN_AWAY
def test_a_device_can_be_authorized(below: LiveGatebell, proxy: PathProxy) -> None:
    client = make_application(below, bob(below), confidential=False)
    told = codes(below, client)
    assert told["verification_uri"] == f"{proxy.url}/oauth/device"
    approve(sign_in(below, alice(below)), below, told["user_code"])
    assert poll(below, client, told["device_code"]).status_code == 200


@pytest.mark.long
@TAKEN_AWAY
def test_api_links_and_pagination_work_below_the_path(
    below: LiveGatebell, proxy: PathProxy
) -> None:
    endpoint = connect(below)
    endpoint.accepted(title="a")
    endpoint.accepted(title="b")
    token = make_token(below, alice(below)).clear
    project = endpoint.project.replace("/", "%2F")
    address = f"{proxy.url}/api/v4/projects/{project}/alert_management_alerts?per_page=1"
    answer = machine(below).get(address, headers={"PRIVATE-TOKEN": token})
    assert answer.json()[0]["web_url"] == f"{proxy.url}/{endpoint.project}/-/alerts/2"
    following = machine(below).get(answer.links["next"]["url"], headers={"PRIVATE-TOKEN": token})
    assert following.json()[0]["title"] == "a"
    library = gitlab.Gitlab(proxy.url, private_token=token, per_page=1)
    library.session.trust_env = False  # The library must not use another proxy.
    try:
        assert len(library.personal_access_tokens.list(get_all=True)) >= 1
    finally:
        library.session.close()


@pytest.mark.long
def test_a_corrected_url_stays_below_the_path(below: LiveGatebell, proxy: PathProxy) -> None:
    answer = machine(below).get(f"{proxy.url}/api/v4//user", allow_redirects=False)
    assert answer.headers["Location"] == f"{proxy.url}/api/v4/user"
