"""Endpoints that receive alerts, and third-party senders such as curl and apprise."""

import json
import socket
import subprocess
import warnings
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import apprise
import requests

from domain.alerts.integrations.actions import create_integration
from domain.alerts.integrations.integrations import get_integration
from domain.alerts.integrations.types import NewIntegration
from domain.core.keyring import Keyring
from domain.projects.access import get_project
from domain.projects.views import Viewer
from models import Integration
from tests.support.accounts.people import alice, database_of, make_project
from tests.support.database.work import work_in
from tests.support.service.live import LiveGatebell

PAYLOADS = Path(__file__).parents[2] / "payloads"
JSON = "application/json"


@dataclass(frozen=True)
class Endpoint:
    """The URL and key of an integration, and requests to it."""

    id: int
    project: str
    #: URL of the receiver; it starts with the URL of the running service.
    url: str
    key: str
    service: str

    @property
    def bearer(self) -> dict[str, str]:
        """The Authorization header with the key."""
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def path(self) -> str:
        """The path of the URL."""
        return self.url.removeprefix(self.service)

    def post(self, body: bytes, **headers: str) -> requests.Response:
        """Send bytes as they are, with the key; headers are written with underscores."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with requests.Session() as session:
            session.trust_env = False
            return session.post(
                self.url,
                data=body,
                headers={"Content-Type": JSON, **self.bearer, **given},
                timeout=60,
            )

    def send(self, **fields: Any) -> requests.Response:
        """Send a generic alert with these fields."""
        return self.post(json.dumps(fields).encode())

    def post_json(self, value: Any) -> list[dict[str, Any]]:
        """Send any JSON value and return the JSON of the response."""
        answer = self.post(json.dumps(value).encode())
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()
        return found

    def accepted(self, **fields: Any) -> dict[str, Any]:
        """Send a generic alert and return the only item of the response."""
        answer = self.send(**fields)
        assert answer.status_code == 200, answer.text
        (item,) = answer.json()
        assert isinstance(item, dict)
        return item


def connect(
    gatebell: LiveGatebell,
    project: str = "",
    *,
    kind: str = "http",
    name: str = "Hook",
    active: bool = True,
) -> Endpoint:
    """Create an integration, by default in a new project of Alice."""
    path = project or make_project(gatebell, alice(gatebell))
    new = NewIntegration(type=kind, name=name, active=active, api_url="https://pager.example")
    with database_of(gatebell) as session:
        found = get_project(path, Viewer(user_id=None, is_admin=True), session=session)
        work = work_in(session, service=gatebell)
        made = create_integration(work, found, new)
        url = get_integration(work, found, made.id).url
        # The key of an external tool is stored, but no page shows it.
        row = session.get_one(Integration, made.id)
        key = work.policy(Keyring).decrypt(row.key_ciphertext)
        return Endpoint(id=made.id, project=path, url=url, key=key, service=gatebell.url)


def captured(name: str) -> bytes:
    """Return a recorded webhook of a real sender."""
    return (PAYLOADS / name).read_bytes()


def basic(user: str, password: str) -> str:
    """Return the value of a Basic header (RFC 7617)."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def webhook(*items: Any, **changes: Any) -> bytes:
    """Return a webhook of Alertmanager with these items."""
    body = {
        "alerts": items,
        "commonAnnotations": {},
        "commonLabels": {},
        "externalURL": "http://alertmanager.example",
        "groupKey": "{}:{}",
        "groupLabels": {},
        "receiver": "gatebell",
        "status": "firing",
        "version": "4",
    }
    return json.dumps(body | changes).encode()


def item(name: str, **changes: Any) -> dict[str, Any]:
    """Return an item of Alertmanager's webhook that fires and has a title."""
    return {
        "status": "firing",
        "labels": {"alertname": name},
        "annotations": {},
        "startsAt": "2026-11-21T07:52:39.502249Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": f"of {name}",
        **changes,
    }


def resolved(name: str, **changes: Any) -> dict[str, Any]:
    """Return the item as resolved."""
    return item(name, status="resolved", endsAt="2026-11-21T08:00:00Z", **changes)


@dataclass(frozen=True)
class Printed:
    """Output of curl: status, headers and body of the response."""

    status: int
    head: str
    body: str


def curl(*arguments: str) -> Printed:
    """Run curl as a script would, without its configuration file."""
    done = subprocess.run(
        ["curl", "--disable", "--silent", "--show-error", "--include", *arguments],  # noqa: S607 - any curl
        capture_output=True,
        timeout=60,
        check=True,
    )
    head, _, body = done.stdout.decode().rpartition("\r\n\r\n")
    last = head.rpartition("HTTP/1.1 ")[2]
    return Printed(status=int(last[:3]), head=last, body=body)


def notifier(endpoint: Endpoint) -> apprise.Apprise:
    """Return apprise, set up with its JSON notifier for the endpoint."""
    made = apprise.Apprise()
    address = f"json://{endpoint.url.partition('://')[2]}"
    with warnings.catch_warnings():
        # Apprise loads all of its plugins, and one plugin imports a module that Python will remove.
        warnings.simplefilter("ignore", DeprecationWarning)
        assert made.add(f"{address}?+Authorization=Bearer%20{endpoint.key}")
    return made


def exchange_raw_bytes(endpoint: Endpoint, sent: bytes, *, hangs_up: bool = False) -> bytes:
    """Write raw bytes to the service and return all bytes of the response."""
    where = urlsplit(endpoint.service)
    assert where.hostname is not None
    with socket.create_connection((where.hostname, where.port or 80), timeout=20) as connection:
        connection.sendall(sent)
        if hangs_up:
            connection.shutdown(socket.SHUT_WR)
        parts = iter(lambda: connection.recv(65_536), b"")
        return b"".join(parts)


def request_head(endpoint: Endpoint, *lines: str) -> bytes:
    """Return the head of a POST request with `Connection: close`."""
    head = (
        f"POST {endpoint.path} HTTP/1.1",
        f"Host: {urlsplit(endpoint.service).netloc}",
        "Connection: close",
        *lines,
    )
    return "\r\n".join((*head, "", "")).encode("latin-1")
