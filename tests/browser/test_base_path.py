"""Below a path of a host, in the browser: scripts, styles and sign-in, and nothing beside it."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support.live import LiveGatebell
from tests.support.path_proxy import PATH, running_proxy
from tests.support.people import alice
from tests.support.senders import connect


@pytest.mark.parametrize("keeps_path", [True, False], ids=["kept", "taken away"])
def test_pages_and_their_scripts_work_below_a_path(
    page: Page, tmp_path: Path, *, keeps_path: bool
) -> None:
    told: list[str] = []
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("console", lambda line: told.append(line.text) if line.type == "error" else None)
    with running_proxy(keeps_path=keeps_path) as proxy:
        live = LiveGatebell(instance_path=tmp_path, database_url="", BASE_URL=proxy.url)
        proxy.target, live.url = live.port, proxy.url
        live.start()
        endpoint = connect(live)
        endpoint.accepted(title="Disk full")
        page.goto(f"{proxy.url}/{endpoint.project}/-/alerts")
        page.get_by_label("User name or e-mail address").fill(alice(live).username)
        page.get_by_label("Password", exact=True).fill(alice(live).password)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("link", name="Disk full").wait_for()
        assert page.url == f"{proxy.url}/{endpoint.project}/-/alerts"
        page.get_by_role("link", name="Disk full").focus()
        page.keyboard.press("a")  # the page's script acknowledges it, and the page comes again
        page.get_by_text("is acknowledged now").wait_for()
        assert page.url.startswith(f"{proxy.url}/{endpoint.project}/-/alerts")
        page.goto("about:blank")
        assert live.stop() == 0
        assert (told, proxy.strays) == ([], [])
        assert PATH in proxy.url
