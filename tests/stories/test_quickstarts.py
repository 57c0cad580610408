"""The two quickstarts, followed as they are written, with curl and `make run`."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urljoin, urlsplit

import psycopg
import pytest
import requests

from tests.stories.third_parties import Browser
from tests.support.accounts.people import Person, make_user, sign_in
from tests.support.alerts.monitoring import wait_until
from tests.support.database.postgres import Postgres
from tests.support.documents.walkthrough import Shell, Walkthrough
from tests.support.oauth.device_wire import approve
from tests.support.oauth.oauth_wire import open_and_follow
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit


@pytest.mark.one_database("sqlite")
def test_the_quickstart_for_developers_works_as_it_is_written(
    gatebell: LiveGatebell, tmp_path: Path
) -> None:
    person = make_user(gatebell)
    browser = sign_in(gatebell, person)
    walk = Walkthrough(
        "guides/quickstart",
        Shell(tmp_path, gatebell.environment),
        {
            "https://gate.example": gatebell.url,
            quote("https://gate.example", safe=""): quote(gatebell.url, safe=""),
            "alice": person.username,
            "alice@example.com": person.email,
            "gbp-…": token_from_page(browser, gatebell),
            "CLIENT_ID": application_from_page(browser, gatebell),
        },
        varying=("id",),
    )
    for label in ("Create token", "Register application"):
        assert f"*{label}*" in walk.text

    walk.run("Use a personal access token")

    url = walk.run("Send the browser").strip()
    landed = Browser(browser, person).walk(url)
    assert walk.matches(walk.take("Send the browser"), landed)
    query = parse_qs(urlsplit(landed).query)
    assert query["state"] == [walk.shell.environment["STATE"]]
    walk.replacements["gbc-…"] = query["code"][0]

    walk.run("Exchange the code")
    user = walk.run("Call the API")
    assert json.loads(user)["username"] == person.username
    newest = json.loads(walk.run("Refresh"))["access_token"]
    assert "The response is `{}`." in walk.text
    assert json.loads(walk.run("Revoke")) == {}
    assert status_of(gatebell, newest) == 401

    codes = json.loads(walk.run("Use a device code"))
    approve(browser, gatebell, codes["user_code"])
    token = json.loads(walk.run("Use a device code"))["access_token"]
    assert status_of(gatebell, token) == 200
    assert walk.is_finished()


def token_from_page(browser: requests.Session, gatebell: LiveGatebell) -> str:
    """Create a token on the page, as described in the quickstart."""
    page = browser.get(f"{gatebell.url}/-/user_settings/access_tokens/new")
    assert "Create token" in page.text
    form = form_with(page, "name")
    answer = submit(browser, page, form, name="Quickstart", scopes=["read_user"])
    shown = open_and_follow(browser, urljoin(page.url, answer.headers["Location"]))
    found = re.search(r'<code id="new-token">(gbp-[^<]+)</code>', shown.text)
    assert found, shown.text
    return found[1]


def application_from_page(browser: requests.Session, gatebell: LiveGatebell) -> str:
    """Register the application on the page, as described in the quickstart."""
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/new")
    assert "Register application" in page.text
    answer = submit(
        browser,
        page,
        form_with(page, "redirect_uris"),
        name="Quickstart",
        redirect_uris="http://127.0.0.1/callback",
        confidential=None,
        scopes=["read_user"],
    )
    shown = open_and_follow(browser, urljoin(page.url, answer.headers["Location"]))
    found = re.search(r'id="application-id"[^>]*>([0-9a-f]{64})<', shown.text)
    assert found, shown.text
    return found[1]


def status_of(gatebell: LiveGatebell, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return gatebell.http().get(f"{gatebell.url}/api/v4/user", headers=headers).status_code


@pytest.mark.long
def test_the_quickstart_of_the_product_works_as_it_is_written(
    postgres: Postgres, tmp_path: Path
) -> None:
    live = LiveGatebell(instance_path=tmp_path / "instance", database_url="")
    database = postgres.new_database()
    shell = Shell(tmp_path, live.environment)
    walk = Walkthrough(
        "quickstart",
        shell,
        {
            "http://127.0.0.1:8000": live.url,
            "postgresql://gatebell:…@db.example/gatebell": database,
        },
    )
    with started_by_make(live):
        walk.run("Quickstart")
        walk.run("Get a token for an application")
        walk.replacements["APPLICATION_ID"] = walk.replacements["720e948b5652cb0a…e2aaf7"]
        url = walk.fill(walk.take("Get a token for an application")).strip()
        password = walk.replacements["e9nuyr-5z1mpx-fe6l41-7bdqe6"]
        alice = Person(username="alice", email="alice@acme.example", password=password)
        landed = Browser(live.http(), alice).walk(url)
        shown = re.search(r"`(http://127\.0\.0\.1:9000/callback\?code=[^`]+)`", walk.text)
        assert shown
        assert walk.matches(shown[1], landed)
        walk.replacements["gbc-…"] = parse_qs(urlsplit(landed).query)["code"][0]
        walk.run("Get a token for an application")
        walk.run("Send an alert")

    make_key, start = walk.take("Use Postgres").splitlines()
    walk.replacements["SECRET_KEY=…"] = f"SECRET_KEY={shell.run(make_key).strip()}"
    for name in ("DATABASE_URL", "SECRET_KEY"):
        shell.environment.pop(name, None)
    with shell.running(walk.fill(start)):
        wait_until(lambda: is_alive(live), "the service on Postgres answers")
        with psycopg.connect(database) as connection:
            assert connection.execute("SELECT username FROM users").fetchall() == [("admin",)]
    assert walk.is_finished()


@contextmanager
def started_by_make(live: LiveGatebell) -> Iterator[None]:
    """Run a service with `make run`, as described in the quickstart."""
    live.python, live.program = "make", ("run",)
    live.start()
    try:
        yield
    finally:
        live.stop()


def is_alive(live: LiveGatebell) -> bool:
    try:
        return live.http().get(f"{live.url}/healthz").ok
    except requests.ConnectionError:
        return False
