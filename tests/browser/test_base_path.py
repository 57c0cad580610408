"""Scripts, styles and sign-in of a service below a path of a host, in a browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import leave
from tests.support.accounts.people import alice
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.path_proxy import PATH, PathProxy, running_proxy


@pytest.fixture(scope="module")
def proxy() -> Iterator[PathProxy]:
    with running_proxy(keeps_path=True) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def below(proxy: PathProxy, new_service: NewService) -> Iterator[LiveGatebell]:
    """The service behind the proxy, with the proxy's URL."""
    live = new_service(only="web", BASE_URL=proxy.url)
    proxy.target, live.url = live.port, proxy.url
    with running(live):
        yield live


@pytest.mark.long
@pytest.mark.parametrize("keeps_path", [True, False], ids=["kept", "taken away"])
def test_pages_and_their_scripts_work_below_a_path(
    page: Page, told: list[str], below: LiveGatebell, proxy: PathProxy, *, keeps_path: bool
) -> None:
    proxy.keeps_path = keeps_path
    endpoint = connect(below)
    endpoint.accepted(title="Disk full")
    alerts = f"{proxy.url}/{endpoint.project}/-/alerts"
    page.goto(alerts)
    page.get_by_label("Username or email address").fill(alice(below).username)
    page.get_by_label("Password", exact=True).fill(alice(below).password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("link", name="Disk full").wait_for()
    assert page.url == alerts
    page.get_by_role("link", name="Disk full").focus()
    page.keyboard.press("a")  # The page's script acknowledges it, and the page is reloaded.
    page.get_by_text("is now acknowledged").wait_for()
    assert page.url.startswith(alerts)
    manifest = page.request.get(f"{proxy.url}/manifest.webmanifest").json()
    assert {manifest[each] for each in ("id", "start_url", "scope")} == {f"{PATH}/"}
    page.goto(f"{proxy.url}/-/user_settings/contacts")
    # The worker covers all pages of the service, and no others.
    worker = page.locator("[data-this-device]").get_attribute("data-worker")
    script = "(url) => navigator.serviceWorker.register(url).then(({ scope }) => scope)"
    assert page.evaluate(script, worker) == f"{proxy.url}/"
    leave(page)
    assert (told, proxy.strays) == ([], [])
    assert PATH in proxy.url
