"""Follows the guide for Auth.js with npm's Auth.js and its unchanged GitLab provider."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.stories.javascript import install, run_script
from tests.stories.third_parties import Browser
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    make_application,
    sign_in,
)
from tests.support.documents.guides import guide_for_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")
FOLDER = Path(__file__).parents[1] / "authjs"
ORIGIN = "https://app.example"
CALLBACK = f"{ORIGIN}/auth/callback/gitlab"

SignIn = Callable[[ClientCredentials], dict[str, Any]]


@pytest.fixture
def sign_in_by_authjs(
    gatebell: LiveGatebell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SignIn:
    install(FOLDER)
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
    monkeypatch.setenv("AUTH_SECRET", "a secret of this test")

    def run(client: ClientCredentials) -> dict[str, Any]:
        guide = guide_for_application("authjs", gatebell, client)
        program = guide.write("auth.mjs", tmp_path)
        monkeypatch.setenv("CLIENT_SECRET", client.secret)
        given = {"program": str(program), "origin": ORIGIN}
        left = run_script(FOLDER, {**given, "cookies": {}})
        person = alice(gatebell)
        returned = Browser(sign_in(gatebell, person), person).walk(left["location"])
        came = run_script(FOLDER, {**given, "cookies": left["cookies"], "returned": returned})
        return {**came, "returned": parse_qs(urlsplit(returned).query)}

    return run


def application(gatebell: LiveGatebell) -> ClientCredentials:
    return make_application(gatebell, bob(gatebell), scopes="read_user", redirect_uris=(CALLBACK,))


@pytest.mark.long
def test_the_provider_signs_a_user_in_without_iss(
    gatebell: LiveGatebell, sign_in_by_authjs: SignIn
) -> None:
    client = application(gatebell)
    refused = sign_in_by_authjs(client)
    assert refused["returned"]["iss"] == [gatebell.url]
    assert "error=Configuration" in refused["location"]
    assert refused["session"] is None

    browser = sign_in(gatebell, bob(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/{client.id}/edit")
    answer = submit(browser, page, form_with(page, "redirect_uris"), omit_iss="y")
    assert answer.status_code == 302, answer.text

    came = sign_in_by_authjs(client)
    assert "iss" not in came["returned"]
    assert came["session"]["user"]["email"] == alice(gatebell).email
    assert came["location"] == ORIGIN
    shown = gatebell.cli("applications", "show", str(client.id))
    assert shown["omit_iss"] is True
    gatebell.cli("applications", "change", str(client.id), "--no-omit-iss")
    assert "iss" in sign_in_by_authjs(client)["returned"]
