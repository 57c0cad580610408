"""Checks that no credential is readable in the database, in a backup or in the instance's folder.

The tests create one credential of every kind through the product. Then they look for each one in
every column and every file: in clear, in Base64 and encoded for URLs.
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests
from sqlalchemy import select

from domain.delivery.mail.outbox import redact_secret_links
from models import Base
from tests.http.api.projects.test_projects_api import made, path_of, script_of
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import (
    database_of,
    make_application,
    make_project,
    make_user,
    open_browser,
    sign_in,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token
from tests.support.accounts.sign_ups import sign_up_link
from tests.support.alerts.senders import connect
from tests.support.mail.email_links import find_link, new_address, request_new_address
from tests.support.mail.stored_texts import list_texts
from tests.support.oauth.device_wire import codes, television
from tests.support.oauth.oauth_wire import (
    machine,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    submit_decision,
)
from tests.support.oauth.pushes import push
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.secrets_seen import CREDENTIAL, SECRETS
from tests.support.sign_in.second_factors import give_app, give_recovery_codes
from tests.support.wire.html_forms import form_with, submit

_PATH_SECRET, _QUERY_SECRET = "Zq8sVt3Xk1LmNp7RwYbC", "Hj5kQw2Zx9VbNm4TrPsD"
_MAIL_PASSWORD = "mail-Uy7tRe3Wq8Lp"
_PROVIDER_SECRET = "provider-Gf6dSa2Zx4Cv"
_CONTACT_SECRET = "contact-Bn7mKj3Hg5Fd"
#: Files of a backup with the key that may contain a secret, and the reason.
_ALLOWED_FILES = {
    "secret_key": "The operator asked for the key, without which nothing can be read.",
    "first_administrator.txt": "The key goes with it, and the password has to be changed.",
}


@dataclass
class Credentials:
    """Secrets by their kind."""

    service: LiveGatebell
    known: dict[str, str] = field(default_factory=dict)

    def keep(self, **secrets: str) -> None:
        for name, secret in secrets.items():
            assert len(secret) >= 8, name
            self.known[name] = secret

    def spellings(self) -> dict[str, bytes]:
        """Return each secret in clear, encoded for URLs and in Base64."""
        found = {}
        everything = {**self.known, **{f"seen {each[:8]}": each for each in SECRETS.all}}
        for name, secret in everything.items():
            clear = secret.encode()
            found[name] = clear
            found[f"{name} for URLs"] = quote(secret, safe="").encode()
            found[f"{name} in Base64"] = base64.b64encode(clear).rstrip(b"=")[:-1]
        return found


@pytest.fixture(scope="module")
def credentials(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[Credentials]:
    """A service with one credential of every kind."""
    settings = {
        "MAIL_URL": f"smtp://gatebell:{_MAIL_PASSWORD}@127.0.0.1:9",
        "SIGN_UP": "open",
        "DYNAMIC_CLIENT_REGISTRATION": "true",
        "OPEN_CLIENT_REGISTRATION": "true",
    }
    with running(new_service(request.param, only="app", **settings)) as service:
        before = set(SECRETS.all)
        made_here = Credentials(service)
        get_shared_administrator(service)
        _sign_in(made_here)
        _authorize(made_here)
        _use_api(made_here)
        _send_links(made_here)
        SECRETS.all -= before - set(made_here.known.values())
        yield made_here
        SECRETS.all |= before


def _sign_in(found: Credentials) -> None:
    service, person = found.service, make_user(found.service)
    browser = sign_in(service, person)
    found.keep(password=person.password)
    for cookie in browser.cookies:
        found.keep(**{f"cookie {cookie.name}": str(cookie.value)})
    found.keep(seed=give_app(service, person).secret)
    for number, code in enumerate(give_recovery_codes(service, person)):
        found.keep(**{f"recovery code {number}": code})


def _authorize(found: Credentials) -> None:
    service, person = found.service, make_user(found.service)
    client, browser = make_application(service, person, scopes="api"), open_browser(service, person)
    spent = parse_redirect(submit_decision(browser, open_authorization(browser, service, client)))[
        "code"
    ]
    pair = parse_token_pair(redeem(service, client, spent))
    waiting = parse_redirect(open_authorization(browser, service, client))["code"]
    found.keep(client_secret=client.secret, code=waiting, spent_code=spent)
    found.keep(access_token=pair.access, refresh_token=pair.refresh)
    device = codes(service, television(service))
    found.keep(device_code=device["device_code"], user_code=device["user_code"])
    found.keep(request_uri=push(service, client).json()["request_uri"].rpartition(":")[2])
    registered = machine(service).post(
        f"{service.url}/oauth/register",
        json={"client_name": "App", "redirect_uris": ["https://app.example/callback"]},
    )
    assert registered.status_code == 201, registered.text
    found.keep(
        registered_secret=registered.json()["client_secret"],
        registration_token=registered.json()["registration_access_token"],
    )


def _use_api(found: Credentials) -> None:
    service, owner = found.service, make_user(found.service)
    project, script = make_project(service, owner), script_of(service, owner)
    administrator = script_of(service, get_shared_administrator(service))
    at = path_of(project)
    found.keep(personal_token=make_token(service, owner).clear)
    namespace = get_namespace(service, "projects", project)
    found.keep(project_token=make_bot_token(script, namespace).clear)
    body = {"name": "again", "scopes": ["api"], "expires_at": "2027-01-31", "access_level": 30}
    again = script.send_request(
        "POST", namespace.by_id, json=body, headers={"Idempotency-Key": unique("key")}
    )
    found.keep(token_of_stored_response=made(again)["token"])
    endpoint = connect(service, project)
    found.keep(integration_key=endpoint.key)
    endpoint.accepted(title="Disk full")
    endpoint.post(json.dumps({"title": "x"}).encode(), Authorization="Bearer wrong-key-of-somebody")
    requests.post(f"{endpoint.url}?key={endpoint.key}", json={"title": "By address"}, timeout=30)
    pager = connect(service, project, name="Pager")
    event = {
        "routing_key": pager.key,
        "event_action": "trigger",
        "payload": {"summary": "Disk full", "source": "web-1", "severity": "critical"},
    }
    sent = requests.post(f"{service.url}/v2/enqueue", json=event, timeout=30)
    found.keep(routing_key=pager.key)
    assert sent.status_code == 202, sent.text
    heartbeat = made(
        script.send_request("POST", f"{at}/heartbeats", json={"name": "b", "every": "1h"})
    )
    found.keep(heartbeat_url=heartbeat["url"].rpartition("/")[2])
    url = f"http://127.0.0.1:1/{_PATH_SECRET}?key={_QUERY_SECRET}"
    webhook = made(script.send_request("POST", f"{at}/webhooks", json={"url": url}))
    found.keep(webhook_secret=webhook["secret"], path_secret=_PATH_SECRET, query=_QUERY_SECRET)
    script.send_request("POST", f"{at}/webhooks/{webhook['id']}/test")
    script.send_request("POST", f"{at}/webhooks/{webhook['id']}/rotate_secret")
    stream = made(administrator.send_request("POST", "/audit_streams", json={"url": url}))
    found.keep(stream_secret=stream["secret"])
    address = f"ntfy://user:{_CONTACT_SECRET}@127.0.0.1:1/alerts"
    contact = {"type": "apprise", "address": address}
    made(script.send_request("POST", "/user/contacts", json=contact))
    made(script.send_request("POST", f"{at}/notification_channels", json=contact))
    found.keep(contact_url=_CONTACT_SECRET)
    calendar = made(script.send_request("POST", "/user/on_call/calendar"))["url"]
    found.keep(calendar=calendar.rpartition("/")[2].removesuffix(".ics"))
    provider = ("--slug", "idp", "--title", "Idp", "--issuer", "https://idp.example")
    secret = ("--client-id", "gatebell", "--client-secret", _PROVIDER_SECRET)
    service.run_cli("identity-providers", "create", *provider, *secret)
    found.keep(provider_secret=_PROVIDER_SECRET, mail_password=_MAIL_PASSWORD)
    invited = new_address()
    invitation = {"email": invited, "access_level": 30}
    made(script.send_request("POST", f"{at}/invitations", json=invitation))
    (text,) = list_texts(service, invited)
    found.keep(invitation=text.partition("/-/invitations/")[2].split()[0])


def _send_links(found: Credentials) -> None:
    service, person = found.service, make_user(found.service)
    email = new_address()
    request_new_address(service, person, email)
    found.keep(confirmation=find_link(service, email).rpartition("/")[2])
    visitor = new_address()
    found.keep(sign_up=str(sign_up_link(service, visitor)).rpartition("/")[2])
    browser = service.http()
    page = browser.get(f"{service.url}/users/password/new")
    submit(browser, page, form_with(page, "login"), login=person.username)
    (text,) = [each for each in list_texts(service, person) if "/users/password/" in each]
    found.keep(reset=re.findall(r"/users/password/(\S+)", text)[-1])


def cells(service: LiveGatebell) -> Iterator[tuple[str, Any]]:
    """Yield every value of the database with its table and column."""
    with database_of(service) as session:
        for table in Base.metadata.sorted_tables:
            for row in session.execute(select(table)).mappings():
                for column, value in row.items():
                    if value is not None:
                        yield f"{table.name}.{column}", value


def as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return json.dumps(value, default=str, ensure_ascii=False).encode("utf-8", "replace")


def readable_in(found: Credentials, text: bytes) -> list[str]:
    return [name for name, spelling in found.spellings().items() if spelling in text]


def files_with(found: Credentials, folder: Path) -> dict[str, list[str]]:
    files = [each for each in folder.rglob("*") if each.is_file()]
    read = {str(each.relative_to(folder)): readable_in(found, each.read_bytes()) for each in files}
    return {name: names for name, names in read.items() if names}


@pytest.mark.both_databases
@pytest.mark.parametrize("credentials", ["sqlite", "postgres"], indirect=True)
def test_no_column_has_a_credential_in_clear(credentials: Credentials) -> None:
    wrong: dict[str, set[str]] = {}
    for place, value in cells(credentials.service):
        text = as_bytes(value)
        names = readable_in(credentials, text)
        names += CREDENTIAL.findall(text.decode("utf-8", "replace"))
        # A link that signs a user in ends with a secret that this test may not know.
        if isinstance(value, str) and redact_secret_links(value) != value:
            names.append("a link with a secret")
        if names:
            wrong.setdefault(place, set()).update(names)
    assert wrong == {}


@pytest.mark.parametrize("credentials", ["sqlite"], indirect=True)
def test_a_credential_in_clear_would_be_found(credentials: Credentials) -> None:
    places = {
        place for place, value in cells(credentials.service) if b"Disk full" in as_bytes(value)
    }
    assert {"deliveries.body", "alerts.title"} <= places
    secret = credentials.known["integration_key"]
    for text in (secret, base64.b64encode(secret.encode()).decode(), quote(f"a {secret}")):
        assert readable_in(credentials, f"<{text}>".encode())


@pytest.mark.long
@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("credentials", ["sqlite"], indirect=True)
def test_no_file_of_a_backup_or_of_the_instance_has_a_credential(
    credentials: Credentials, tmp_path: Path
) -> None:
    service = credentials.service
    service.cli("backup", str(tmp_path / "without"), "--without-key")
    service.cli("backup", str(tmp_path / "with"))
    for folder in (tmp_path / "without", tmp_path / "with", service.instance_path):
        found = files_with(credentials, folder)
        assert {name for name in found if Path(name).name not in _ALLOWED_FILES} == set(), found
    assert not list((tmp_path / "without").rglob("secret_key"))
    assert not list((tmp_path / "without").rglob("first_administrator.txt"))
