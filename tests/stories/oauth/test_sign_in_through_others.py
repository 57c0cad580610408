"""Sign-in through real providers: npm's oidc-provider, and another Gatebell."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urljoin, urlsplit

import pytest
import requests

from domain.access.roles import Role
from tests.stories.javascript import NODE, install
from tests.stories.third_parties import Browser
from tests.support.accounts.people import (
    Person,
    make_application,
    make_project,
    make_user,
    sign_in,
    unique,
)
from tests.support.service.live import ROOT, LiveGatebell, NewService, running
from tests.support.service.ports import free_port
from tests.support.service.secrets_seen import SECRETS
from tests.support.sign_in.identity_checks import check_in_an_hour
from tests.support.sign_in.openid_provider import ask_to_sign_in
from tests.support.sign_in.provider_groups import role_in
from tests.support.sign_in.second_factors import assert_signed_in, is_signed_in
from tests.support.wire.html_forms import forms_in, submit

FOLDER = ROOT / "tests" / "stories" / "oidc_provider"
SECRET = "a-secret-of-a-story-that-everybody-knows"


@pytest.fixture(scope="module")
def ours(new_service: NewService) -> Iterator[LiveGatebell]:
    """The service that users sign in to, without a worker."""
    with running(new_service("sqlite", only="app")) as live:
        yield live


def add(service: LiveGatebell, *arguments: str) -> dict[str, str]:
    """Create a provider as its administrator does, and check that it is reachable."""
    made = service.cli("identity-providers", "create", *arguments, "--creates-accounts")
    tested = service.cli("identity-providers", "test", str(made["id"]))
    assert (tested["works"], tested["names_itself"]) == (True, True), tested
    return made


@contextmanager
def oidc_provider(port: int, redirect_uri: str) -> Iterator[None]:
    """Run the provider, which stores its data in memory."""
    given = json.dumps({"port": port, "redirectUri": redirect_uri})
    command = [str(NODE), "provider.mjs", given]
    with subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.terminate()


def through_its_pages(browser: requests.Session, url: str, back: str) -> str:
    """Sign in and consent on the pages of oidc-provider, and return the URL of the redirect."""
    page = browser.get(url, allow_redirects=False)
    for _ in range(12):
        if page.is_redirect:
            location = urljoin(page.url, page.headers["Location"])
            if location.startswith(back):
                return location
            page = browser.get(location, allow_redirects=False)
        else:
            (form,) = (each for each in forms_in(page.text) if each.method == "post")
            filled = {"login": "dana", "password": "any"} if form.has("login") else {}
            page = submit(browser, page, form, **filled)
    raise AssertionError(page.text)


@pytest.mark.long
def test_sign_in_through_oidc_provider(ours: LiveGatebell) -> None:
    install(FOLDER)
    owner = make_user(ours)
    group = make_project(ours, owner).partition("/")[0]
    port, slug = free_port(), unique("idp")
    back = f"{ours.url}/users/auth/{slug}/callback"
    issuer = f"http://127.0.0.1:{port}"
    with oidc_provider(port, back):
        made = add(
            ours,
            *("--slug", slug, "--title", "Scully", "--issuer", issuer),
            *("--client-id", "gatebell", "--client-secret", SECRET),
            *("--group-roles", f"sre = {group}: Developer"),
        )
        assert made["redirect_uri"] == back
        browser = ours.http()
        begun = ask_to_sign_in(ours, browser, slug)
        url = through_its_pages(browser, begun.headers["Location"], back)
        assert_signed_in(browser.get(url, allow_redirects=False))
        dana = Person(username="dana", email="dana@people.example", password="")
        assert role_in(ours, dana.username, group) is Role.DEVELOPER
        check_in_an_hour(ours)
        assert is_signed_in(ours, browser)
    check_in_an_hour(ours)  # The provider is unavailable.
    assert is_signed_in(ours, browser)
    with oidc_provider(port, back):  # The new process knows no users or tokens.
        check_in_an_hour(ours)
        assert not is_signed_in(ours, browser)


def test_sign_in_through_another_gatebell(gatebell: LiveGatebell, ours: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    group = make_project(gatebell, charlie).partition("/")[0]
    here = make_project(ours, make_user(ours)).partition("/")[0]
    slug = unique("idp")
    back = f"{ours.url}/users/auth/{slug}/callback"
    client = make_application(
        gatebell, charlie, redirect_uris=(back,), scopes="openid profile email"
    )
    add(
        ours,
        *("--slug", slug, "--title", "Gatebell", "--preset", "gitlab", "--issuer", gatebell.url),
        *("--client-id", client.client_id, "--client-secret", client.secret),
        # The other Gatebell only reports verified addresses as verified.
        *("--vouches-for-email", "--group-roles", f"{group} = {here}: Reporter"),
    )
    browser = ours.http()
    begun = ask_to_sign_in(ours, browser, slug)
    url = Browser(sign_in(gatebell, charlie), charlie).walk(begun.headers["Location"])
    SECRETS.remember(urlsplit(url).query)
    assert_signed_in(browser.get(url, allow_redirects=False))
    assert role_in(ours, charlie.username, here) is Role.REPORTER
    # The user revokes the authorization at the other Gatebell.
    check_in_an_hour(ours)
    assert is_signed_in(ours, browser)
    revoke_there(gatebell, charlie)
    check_in_an_hour(ours)
    assert not is_signed_in(ours, browser)


def revoke_there(gatebell: LiveGatebell, person: Person) -> None:
    """Revoke the user's authorization of the application on its page."""
    browser = sign_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    (form,) = (each for each in forms_in(page.text) if "revoke" in each.action)
    assert submit(browser, page, form).status_code == 302
