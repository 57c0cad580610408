"""Checks every page in light and dark mode: axe finds no problems, and nothing overflows."""

from collections.abc import Iterator
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

import pytest
import requests
from playwright.sync_api import Page

from tests.browser.doors import have_signed_in
from tests.browser.html_checker import html_problems
from tests.browser.looks import NASTY, problems_at
from tests.browser.page_lists import (
    SLUG,
    alert_pages,
    contact_pages,
    escalation_pages,
    heartbeat_pages,
    identity_pages,
    incident_pages,
    remove_providers,
    silence_pages,
    token_pages,
    webhook_pages,
)
from tests.support.accounts.people import (
    CALLBACK,
    Person,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.resource_tokens import script_of
from tests.support.database.stored import list_stored_deliveries
from tests.support.mail.email_links import create_waiting_link, new_address
from tests.support.registry.notifications import notify, pushed
from tests.support.service.live import LiveGatebell

#: Error pages, which explain why there is nothing to show.
REFUSALS = {
    "/nothing/here": HTTPStatus.NOT_FOUND,
    "/oauth/authorize?client_id=unknown": HTTPStatus.BAD_REQUEST,
    f"/users/auth/{SLUG}/callback": HTTPStatus.BAD_REQUEST,
}
#: `make test` checks every twentieth page, and `make test-long` checks all.
PARTS = 20


@pytest.fixture(scope="module")
def addresses(live_sqlite: LiveGatebell) -> Iterator[tuple[Person, list[str]]]:
    """A user with objects of all kinds, and the pages that show them."""
    alice = make_user(live_sqlite)
    path = make_project(live_sqlite, alice)
    application = make_application(
        live_sqlite, alice, redirect_uris=(CALLBACK, "http://a.example/")
    )
    made = live_sqlite.cli(*("integrations", "create", path, "--type", "http", "--name", "Nagios"))
    nasty = {"title": NASTY, "hosts": [NASTY], "extra": {"deep": [NASTY]}}
    headers = {"Authorization": f"Bearer {made['key']}"}
    bodies: tuple[object, ...] = (
        nasty,
        {"runbook": "x", "platform_environment_name": "production"},
        [],
    )
    for body in bodies:
        requests.post(made["url"], json=body, headers=headers, timeout=10)
    delivery = list_stored_deliveries(live_sqlite, path)[0].id
    make_token(live_sqlite, alice, name=NASTY[:100], lifetime=timedelta(days=9))
    make_token(live_sqlite, alice, name=NASTY[:100], revoked_at=now())
    for name in (path, f"{path}/worker"):
        notify(live_sqlite, pushed(name))
    script = script_of(live_sqlite, alice)
    of_registry = script.send_request(
        "GET", f"/projects/{path.replace('/', '%2F')}/registry/repositories"
    )
    of_tokens = token_pages(live_sqlite, alice, application, path, NASTY)
    asked = {
        "response_type": "code",
        "client_id": application.client_id,
        "redirect_uri": CALLBACK,
        "scope": application.scopes,
    }
    settings = f"/{path}/-/settings"
    integration = f"{settings}/integrations/{made['id']}"
    yield (
        alice,
        [
            f"/-/users/{alice.username}",
            *("/", "/groups", "/groups/new", "/projects/new", "/nothing/here", "/help/errors"),
            *("/help", "/help?search=token", "/help/guides/curl", "/help/docs/settings"),
            *("/help/releases/check", "/help/releases", "/help/releases?release=16.7&interface=ci"),
            *(f"/help/releases/{each}" for each in ("external-status-length", "ci-job-jwt")),
            *(
                f"/{path}",
                f"/{path.partition('/')[0]}",
                f"/groups/{path.partition('/')[0]}/-/members",
            ),
            *(f"/{path}/-/alerts", f"/{path}/-/alerts?status=resolved", f"/{path}/-/alerts/1"),
            *("/-/search", "/-/search?q=very", "/-/search?q=nothing+at+all"),
            *("/-/alerts", f"/-/alerts?status=all&severity=critical&project={path}"),
            f"/{path}/-/alerts?status=all&severity=critical&sort=events&search=very",
            f"/{path}/-/alerts/2",
            *(f"/{path}/-/environments", f"/{path}/-/environments/production"),
            f"/{path}/-/container_registry",
            f"/{path}/-/container_registry/{of_registry.json()[0]['id']}",
            *(f"{settings}/general", f"{settings}/members"),
            *place_pages(path, other=make_project(live_sqlite, alice)),
            *(f"{settings}/integrations{each}" for each in ("", "/new", "/new/tools")),
            *(f"{settings}/integrations/new/tools/{each}" for each in ("zabbix", "pingdom")),
            *(f"{integration}/{tab}" for tab in ("credentials", "test", "deliveries")),
            f"{integration}/delete",
            *(f"{integration}/configure?sample={delivery}", f"{integration}/deliveries/{delivery}"),
            f"{integration}/deliveries?show=refused",
            *alert_pages(live_sqlite, alice, path, NASTY),
            *webhook_pages(live_sqlite, alice, path),
            *contact_pages(live_sqlite, alice, path),
            *silence_pages(live_sqlite, alice, path, NASTY),
            *heartbeat_pages(live_sqlite, path, NASTY),
            *escalation_pages(live_sqlite, alice, path),
            *incident_pages(live_sqlite, alice, path, NASTY),
            *identity_pages(live_sqlite, alice, NASTY),
            create_waiting_link(live_sqlite, alice, new_address()),
            *("/-/user_settings/profile", "/-/user_settings/applications"),
            *("/-/user_settings/authorized_applications", "/-/user_settings/activity"),
            "/-/user_settings/api_changes",
            *("/-/user_settings/access_tokens", "/-/user_settings/access_tokens?state=inactive"),
            "/-/user_settings/access_tokens/new",
            "/-/user_settings/applications/new",
            *of_tokens,
            *(
                f"/-/user_settings/applications/{application.id}{tab}"
                for tab in ("", "/people", "/edit", "/delete")
            ),
            f"/oauth/authorize?{urlencode(asked)}",
            "/oauth/authorize?client_id=unknown",
            "/oauth/logout",
        ],
    )
    remove_providers(live_sqlite)


def place_pages(path: str, *, other: str) -> list[str]:
    """Return the pages that move and delete a project and its group."""
    target, group = other.partition("/")[0], path.partition("/")[0]
    pages = ("path", "transfer", f"transfer?to={target}", "delete")
    return [
        f"/groups/{group}/-/settings",
        *(f"/{path}/-/settings/{page}" for page in pages),
        *(f"/groups/{group}/-/{page}" for page in pages),
    ]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))]
)
def test_every_page_has_no_problems(
    live_sqlite: LiveGatebell, page: Page, addresses: tuple[Person, list[str]], part: int
) -> None:
    person, paths = addresses
    have_signed_in(page, live_sqlite, person)
    problems = [
        problem
        for path in paths[part::PARTS]
        for problem in problems_at(
            page, live_sqlite.url + path, status=REFUSALS.get(path, HTTPStatus.OK)
        )
    ]
    assert problems == []


@pytest.mark.long
def test_the_html_of_every_page_is_valid(
    live_sqlite: LiveGatebell, addresses: tuple[Person, list[str]], tmp_path: Path
) -> None:
    person, paths = addresses
    browser = open_browser(live_sqlite, person)
    for number, path in enumerate(paths):
        page = browser.get(live_sqlite.url + path)
        (tmp_path / f"{number:03}.html").write_text(page.text, encoding="utf-8")
    assert [f"{paths[int(name[:3])]}: {problem}" for name, problem in html_problems(tmp_path)] == []
