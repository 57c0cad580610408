"""Follows the guide for single-page applications word for word in a real browser."""

import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.stories.javascript import install
from tests.support.accounts.people import alice, bob, make_application
from tests.support.documents.guides import guide_for_application
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
GUIDES = Path(__file__).parents[2] / "stories" / "guides"
MODULES = {
    "oidc-client-ts.js": "oidc-client-ts/dist/esm/oidc-client-ts.js",
    "jwt-decode.js": "jwt-decode/build/esm/index.js",
}


class _Site(SimpleHTTPRequestHandler):
    """Serves a folder, and its index page for every path without a file."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if not Path(self.translate_path(path)).is_file():
            self.path = "/index.html"
        super().do_GET()

    def log_message(self, *arguments: object) -> None:
        """Do not log."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """URL of the test's folder on a separate origin."""
    handler = partial(_Site, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_user_signs_in_and_the_api_returns_the_user(
    gatebell: LiveGatebell, page: Page, site: str, tmp_path: Path
) -> None:
    install(GUIDES)
    client = make_application(
        gatebell,
        bob(gatebell),
        redirect_uris=(f"{site}/callback",),
        scopes="openid profile read_user",
        confidential=False,
    )
    guide = guide_for_application("single-page-application", gatebell, client)
    for name in ("index.html", "main.js"):
        guide.write(name, tmp_path)
    (tmp_path / "vendor").mkdir()
    for name, module in MODULES.items():
        shutil.copy(GUIDES / "node_modules" / module, tmp_path / "vendor" / name)
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(site)
    expect(page.locator("#who")).to_have_text("Not signed in")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Authorize").click()
    expect(page.locator("#who")).to_have_text("Signed in as Alice")
    page.get_by_role("button", name="Who am I to the API?").click()
    expect(page.locator("#who")).to_have_text(f"The API knows {alice(gatebell).username}")
    assert page.url == f"{site}/"
