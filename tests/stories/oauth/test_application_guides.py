"""Follows the guides that connect an application word for word."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from flask import Flask
from joserfc.jwk import RSAKey

from tests.stories.javascript import install, run_script
from tests.stories.third_parties import Browser
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    alice,
    bob,
    make_application,
    make_project,
    sign_in,
    signed_in,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_alerts
from tests.support.documents.guides import guide_for_application, guide_for_project
from tests.support.oauth.device_wire import approve
from tests.support.oauth.machines import account_of, machine_application, public_part
from tests.support.oauth.oauth_wire import new_pair, server_application
from tests.support.oauth.openid_wire import openid_application
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
WEB = "https://app.example/callback"
GUIDES = Path(__file__).parents[1] / "guides"
MOBILE = "com.example.notes:/callback"


def run_module(text: str) -> SimpleNamespace:
    """Run a program of a guide as a module."""
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile(text, "guide", "exec"), names)  # noqa: S102 - the project's own
    return SimpleNamespace(**names)


def browser_of_alice(gatebell: LiveGatebell) -> Browser:
    return Browser(sign_in(gatebell, alice(gatebell)), alice(gatebell))


@pytest.mark.long
def test_a_web_application_signs_a_user_in_and_calls_the_api(
    gatebell: LiveGatebell, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_application(
        gatebell,
        bob(gatebell),
        redirect_uris=(WEB,),
        scopes="openid profile email read_api",
    )
    guide = guide_for_application("web-application", gatebell, client)
    monkeypatch.setenv("SESSION_KEY", "a key of this test")
    monkeypatch.setenv("CLIENT_SECRET", client.secret)
    program = run_module(guide.block("app.py") + guide.block("projects.py"))
    person = program.app.test_client()
    leaving = person.get("/", follow_redirects=False)
    assert leaving.location == "/sign_in"
    outside = browser_of_alice(gatebell).walk(person.get("/sign_in").location)
    assert outside.startswith(f"{WEB}?")
    assert person.get(outside.removeprefix("https://app.example")).location == "/"
    assert person.get("/").text == "Signed in as Alice"
    token = {"access_token": api_token(gatebell), "token_type": "Bearer"}
    connect(gatebell)
    with program.app.app_context():
        assert program.projects_of(token)
    assert person.get("/sign_out").location == f"{gatebell.url}/oauth/logout"


def test_a_service_works_with_its_secret_and_with_its_key(
    gatebell: LiveGatebell, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = RSAKey.generate_key(2048)
    client = machine_application(gatebell, jwks=public_part(key))
    path = make_project(gatebell, alice(gatebell))
    members = f"/projects/{path.replace('/', '%2F')}/members"
    added = {"username": account_of(gatebell, client), "access_level": 20}
    api_caller(gatebell, alice(gatebell), members).done("POST", json=added, status=201)
    guide = guide_for_application("machine", gatebell, client)
    monkeypatch.setenv("CLIENT_SECRET", client.secret)
    program = run_module(guide.block("service.py"))
    assert program.project_names(program.new_session()) == [path]
    keyed = run_module(guide.block("keyed.py"))
    session = keyed.new_keyed_session(key.as_pem(private=True).decode())
    assert program.project_names(session) == [path]


def api_token(gatebell: LiveGatebell) -> str:
    return make_token(gatebell, alice(gatebell), scopes="read_api").clear


@pytest.mark.long
@pytest.mark.parametrize("name", ["SignIn.kt", "SignIn.swift"])
def test_the_mobile_guide_has_the_values_that_its_library_needs(
    gatebell: LiveGatebell, name: str
) -> None:
    client = make_application(
        gatebell,
        bob(gatebell),
        redirect_uris=(MOBILE,),
        scopes="openid profile read_user",
        confidential=False,
    )
    text = guide_for_application("mobile-application", gatebell, client).block(name)
    issuer, client_id, redirect_uri = (
        re.search(rf'{each} = [^"\n]*"([^"]+)"', text)
        for each in ("issuer", "clientId", "redirectUri")
    )
    assert issuer
    assert client_id
    assert redirect_uri
    install(GUIDES)
    application = {
        "issuer": issuer[1],
        "clientId": client_id[1],
        "redirectUri": redirect_uri[1],
        "scope": "openid profile read_user",
    }
    begun = run_script(GUIDES, application, script="appauth.mjs")
    address = browser_of_alice(gatebell).walk(begun["url"])
    assert address.startswith(f"{MOBILE}?")
    code = dict(parse_qsl(urlsplit(address).query))["code"]
    given = {**application, "asked": begun["asked"], "code": code}
    token = run_script(GUIDES, given, script="appauth.mjs")
    assert {"access_token", "refresh_token", "id_token"} <= token.keys()


@pytest.mark.long
def test_a_program_in_a_terminal_shows_a_code_and_signs_in(
    gatebell: LiveGatebell, tmp_path: Path
) -> None:
    client = make_application(gatebell, bob(gatebell), scopes="read_user", confidential=False)
    guide = guide_for_application("command-line-application", gatebell, client)
    file = guide.write("sign_in.py", tmp_path)
    with subprocess.Popen(
        [sys.executable, str(file)],
        env={**os.environ, "no_proxy": "*"},
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        told = program.stdout.readline()
        found = re.fullmatch(r"Open (\S+) and enter (\S+)\n", told)
        assert found, told
        assert found[1] == f"{gatebell.url}/oauth/device"
        approve(signed_in(gatebell, alice(gatebell)), gatebell, found[2])
        assert program.stdout.read() == f"Signed in as {alice(gatebell).username}\n"


@pytest.mark.long
@pytest.mark.parametrize("block", ["api.py", "introspection.py"])
def test_an_api_checks_tokens(
    gatebell: LiveGatebell, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    client = openid_application(gatebell)
    monkeypatch.setenv("CLIENT_SECRET", client.secret)
    api = run_module(guide_for_application("resource-server", gatebell, client).block(block)).app
    allowed = new_pair(gatebell, client, scope="openid read_user").access
    assert status_of(api, allowed) == 200
    assert status_of(api, new_pair(gatebell, client, scope="openid").access) == 403
    assert status_of(api, new_pair(gatebell, server_application(gatebell)).access) == 401
    assert status_of(api, "nobody's") == 401


def status_of(api: Flask, token: str) -> int:
    return api.test_client().get("/notes", headers={"Authorization": f"Bearer {token}"}).status_code


@pytest.mark.long
def test_a_script_reads_and_acknowledges_alerts(gatebell: LiveGatebell, tmp_path: Path) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Disk full", severity="critical")
    guide = guide_for_project("scripts", gatebell, endpoint.project)
    token = make_token(gatebell, alice(gatebell), scopes="write_alerts").clear
    assert [each["title"] for each in json.loads(guide.run_shell("list", TOKEN=token))] == [
        "Disk full"
    ]
    guide.run_shell("acknowledge", TOKEN=token)
    assert list_stored_alerts(gatebell, endpoint.project)[0].status == "acknowledged"
    done = subprocess.run(
        [sys.executable, str(guide.write("alerts.py", tmp_path))],
        env={**os.environ, "no_proxy": "*", "TOKEN": token},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "1 critical acknowledged Disk full\n"
