"""Every page, light and wide, dark and narrow: axe finds nothing, nothing sticks out."""

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlencode

import pytest
import requests
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser.token_pages import token_pages
from tests.support.live import LiveGatebell
from tests.support.people import CALLBACK, Person, make_application, make_project, make_user, now
from tests.support.personal_tokens import make_token
from tests.support.stored import deliveries_of

#: Text that a sender may put anywhere, and that no page may choke on.
NASTY = "\N{RIGHT-TO-LEFT OVERRIDE}<b>bold</b> {{7*7}} " + "very-long-word" * 12


@pytest.fixture(scope="module")
def addresses(live_sqlite: LiveGatebell) -> tuple[Person, list[str]]:
    """Somebody with one of everything, and where it is shown."""
    alice = make_user(live_sqlite)
    path = make_project(live_sqlite, alice)
    application = make_application(
        live_sqlite, alice, redirect_uris=(CALLBACK, "http://a.example/")
    )
    made = live_sqlite.cli(
        *("integrations", "create", path, "--type", "http", "--name", "Nagios"),
    )
    nasty = {"title": NASTY, "hosts": [NASTY], "extra": {"deep": [NASTY]}}
    headers = {"Authorization": f"Bearer {made['key']}"}
    bodies: tuple[object, ...] = (
        nasty,
        {"runbook": "x", "platform_environment_name": "production"},
        [],
    )
    for body in bodies:
        requests.post(made["url"], json=body, headers=headers, timeout=10)
    delivery = deliveries_of(live_sqlite, path)[0].id
    make_token(live_sqlite, alice, name=NASTY[:100], lifetime=timedelta(days=9))
    make_token(live_sqlite, alice, name=NASTY[:100], revoked_at=now())
    of_tokens = token_pages(live_sqlite, alice, application, path, NASTY)
    asked = {
        "response_type": "code",
        "client_id": application.client_id,
        "redirect_uri": CALLBACK,
        "scope": application.scopes,
    }
    settings = f"/{path}/-/settings"
    integration = f"{settings}/integrations/{made['id']}"
    return alice, [
        f"/-/users/{alice.username}",
        *("/", "/groups", "/groups/new", "/projects/new", "/nothing/here", "/help/errors"),
        *(f"/{path}", f"/{path.partition('/')[0]}", f"/groups/{path.partition('/')[0]}/-/members"),
        *(f"/{path}/-/alerts", f"/{path}/-/alerts?status=resolved", f"/{path}/-/alerts/1"),
        f"/{path}/-/alerts?status=all&severity=critical&sort=events&search=very",
        f"/{path}/-/alerts/2",
        *(f"/{path}/-/environments", f"/{path}/-/environments/production"),
        *(f"{settings}/general", f"{settings}/members"),
        *(f"{settings}/integrations", f"{settings}/integrations/new"),
        *(f"{integration}/{tab}" for tab in ("configure", "credentials", "test", "deliveries")),
        f"{integration}/delete",
        *(f"{integration}/configure?sample={delivery}", f"{integration}/deliveries/{delivery}"),
        *(f"{integration}/deliveries?show={name}" for name in ("refused", "tests")),
        *(f"/-/user_settings/{tab}" for tab in ("profile", "security", "applications")),
        *("/-/user_settings/authorized_applications", "/-/user_settings/activity"),
        *(f"/-/user_settings/security/authenticator{end}" for end in ("", "/remove")),
        *("/-/user_settings/access_tokens", "/-/user_settings/access_tokens?state=inactive"),
        "/-/user_settings/access_tokens/new",
        "/-/user_settings/applications/new",
        *of_tokens,
        *(
            f"/-/user_settings/applications/{application.id}{tab}"
            for tab in ("", "/edit", "/delete")
        ),
        f"/oauth/authorize?{urlencode(asked)}",
        "/oauth/authorize?client_id=unknown",
        "/oauth/logout",
    ]


@pytest.fixture(params=["light wide", "dark narrow"])
def look(
    request: pytest.FixtureRequest,
    browser: Browser,
    live_sqlite: LiveGatebell,
    addresses: tuple[Person, list[str]],
) -> Iterator[Page]:
    """A page of somebody who signed in, in one look."""
    scheme, width = request.param.split()
    context = browser.new_context(
        viewport={"width": 1280 if width == "wide" else 360, "height": 800},
        color_scheme=scheme,
    )
    context.set_default_timeout(30_000)
    page = context.new_page()
    alice, _ = addresses
    page.goto(f"{live_sqlite.url}/users/sign_in")
    page.get_by_label("User name or e-mail address").fill(alice.username)
    page.get_by_label("Password", exact=True).fill(alice.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{live_sqlite.url}/")
    yield page
    context.close()


def problems_of(page: Page, address: str) -> list[str]:
    """Open a page and say what is wrong with it."""
    told: list[str] = []
    page.on("pageerror", lambda error: told.append(f"script: {error}"))
    answer = page.goto(address)
    status = answer.status if answer else 0
    expected = {"/nothing/here": 404, "/oauth/authorize?client_id=unknown": 400}
    path = address.removeprefix(address.partition("://")[2].partition("/")[0])
    wanted = next((code for end, code in expected.items() if path.endswith(end)), 200)
    found = [] if status == wanted else [f"status {status}"]
    found += [f"axe: {rule['id']}" for rule in Axe().run(page).response["violations"]]
    is_wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    found += ["scrolls sideways"] if page.evaluate(is_wider) else []
    return [f"{address}: {problem}" for problem in (*found, *told)]


def test_nothing_is_wrong_with_any_page(
    live_sqlite: LiveGatebell, look: Page, addresses: tuple[Person, list[str]]
) -> None:
    problems = [
        problem
        for address in addresses[1]
        for problem in problems_of(look, live_sqlite.url + address)
    ]

    assert problems == []


def test_pages_work_without_scripts(
    browser: Browser, live_sqlite: LiveGatebell, addresses: tuple[Person, list[str]]
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    alice, _ = addresses
    page.goto(f"{live_sqlite.url}/users/sign_in")
    page.get_by_label("User name or e-mail address").fill(alice.username)
    page.get_by_label("Password", exact=True).fill(alice.password)
    page.get_by_role("button", name="Sign in", exact=True).click()

    assert page.url == f"{live_sqlite.url}/"
    context.close()
