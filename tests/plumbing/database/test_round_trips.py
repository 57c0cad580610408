"""How often a request waits for Postgres: what most of its time is made of.

The numbers are what each needs now. Who makes one larger has to say why; begin and end of a
transaction are a wait each.
"""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.alerts.senders import JSON, item, resolved, webhook
from tests.support.database.sql_statements import round_trips
from tests.support.service.commands import operate

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

PASSWORD = "a long passphrase of the tests 77"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Caller:
    """An application of alice's, with everything that its requests need."""

    def __init__(self, app: Flask, client: FlaskClient) -> None:
        account = ("create", "alice", "--email", "alice@example.org", "--password-stdin")
        done = app.test_cli_runner().invoke(args=["users", *account], input=f"{PASSWORD}\n")
        assert done.exit_code == 0, done.output
        made = operate(
            app, "applications", "create", "App", "--owner", "alice", "--scopes",
            "read_user offline_access", "--redirect-uri", "https://a.example/cb",
        )  # fmt: skip
        self._client = client
        self._proof = {"client_id": made["application_id"], "client_secret": made["secret"]}
        self.pair = self.post("/oauth/token", **self._as_alice()).get_json()
        self.device = self.begin().get_json()["device_code"]

    @staticmethod
    def _as_alice() -> dict[str, str]:
        scope = "read_user offline_access"
        return {
            "grant_type": "password",
            "username": "alice",
            "password": PASSWORD,
            "scope": scope,
        }

    def post(self, path: str, **form: str) -> TestResponse:
        return self._client.post(path, data={**self._proof, **form})

    def get(self, path: str) -> TestResponse:
        token = self.pair["access_token"]
        return self._client.get(path, headers={"Authorization": f"Bearer {token}"})

    def introspect(self) -> TestResponse:
        return self.post("/oauth/introspect", token=self.pair["access_token"])

    def refresh(self) -> TestResponse:
        form = {"grant_type": "refresh_token", "refresh_token": self.pair["refresh_token"]}
        answer = self.post("/oauth/token", **form)
        self.pair = answer.get_json()
        return answer

    def begin(self) -> TestResponse:
        return self.post("/oauth/authorize_device", scope="read_user")

    def poll(self) -> TestResponse:
        return self.post("/oauth/token", grant_type=DEVICE_GRANT, device_code=self.device)


REQUESTS: dict[str, tuple[Callable[[Caller], Any], int]] = {
    "token info": (lambda caller: caller.get("/oauth/token/info"), 1),
    "the user of a token": (lambda caller: caller.get("/api/v4/user"), 1),
    "introspection": (Caller.introspect, 1),
    "refresh": (Caller.refresh, 1),
    "device authorization": (Caller.begin, 1),
    "device poll": (Caller.poll, 1),
}


def test_a_request_waits_for_the_database_no_more_than_it_must(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine, settings are not read while the waits are counted.
    monkeypatch.setattr("web.services._REFRESH_SECONDS", 600.0)
    caller, found = Caller(app, client), {}
    for name, (request, _) in REQUESTS.items():
        request(caller)  # statements are prepared, and uses that are noted once a minute are noted
        with round_trips() as waits:
            answer = request(caller)
        assert answer.status_code in {200, 400}, name
        found[name] = len(waits)
    assert found == {name: most for name, (_, most) in REQUESTS.items()}


class Sender:
    """A monitoring system that never says the same thing twice, unless it is told to."""

    def __init__(self, app: Flask, client: FlaskClient, kind: str, project: str) -> None:
        operate(app, "projects", "create", project)
        words = ("integrations", "create", project, "--type", kind, "--name", kind)
        self._made = operate(app, *words)
        self._client = client

    def post(self, body: bytes) -> TestResponse:
        headers = {"Authorization": f"Bearer {self._made['key']}", "Content-Type": JSON}
        path = self._made["url"].removeprefix("http://localhost")
        return self._client.post(path, data=body, headers=headers)


def crowd(count: int, mark: str) -> bytes:
    """Return a webhook of so many alerts, as short as they can be."""
    name = {"startsAt": "2026-11-21T07:52:39Z"}
    return webhook(*({**name, "labels": {"alertname": f"{mark}{n}"}} for n in range(count)))


#: The kind of integration, a body that differs with the mark, and the waits.
DELIVERIES: dict[str, tuple[str, Callable[[str], bytes], int]] = {
    "an alert": ("http", lambda mark: b'{"title": "%s"}' % mark.encode(), 2),
    "the same alert again": ("http", lambda _mark: b'{"title": "same"}', 2),
    "a recovery": ("http", lambda _mark: b'{"title": "same", "end_time": "2026-11-21T08:00Z"}', 6),
    "a webhook with one alert": ("prometheus", lambda mark: webhook(item(mark)), 2),
    "a webhook with one recovery": ("prometheus", lambda mark: webhook(resolved(mark)), 6),
    "a webhook of 100": ("prometheus", lambda mark: crowd(100, mark), 6),
    "the same 100 again": ("prometheus", lambda _mark: crowd(100, "same"), 6),
    "a webhook of 5,000": ("prometheus", lambda mark: crowd(5_000, mark), 6),
    "of all kinds": (
        "prometheus",
        lambda mark: webhook(item(mark), item("a"), resolved("a"), resolved("b"), item("b")),
        6,
    ),
}


@pytest.mark.long
def test_a_delivery_waits_as_often_however_many_items_it_has(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine, settings are not read while the waits are counted.
    monkeypatch.setattr("web.services._REFRESH_SECONDS", 600.0)
    operate(app, "groups", "create", "acme")
    found = {}
    for number, (name, (kind, body, _)) in enumerate(DELIVERIES.items()):
        sender = Sender(app, client, kind, f"acme/shop{number}")
        assert sender.post(body("first")).status_code == 200
        with round_trips() as waits:
            answer = sender.post(body("second"))
        assert answer.status_code == 200, name
        found[name] = len(waits)
    assert found == {name: most for name, (_, _, most) in DELIVERIES.items()}


#: What a job says when its heartbeat is up, and the waits.
PINGS = {"": 1, "/start": 1, "/log": 1, "/0": 1}


@pytest.mark.long
def test_a_ping_waits_once(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.services._REFRESH_SECONDS", 600.0)
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    words = ("heartbeats", "create", "acme/shop", "--name", "job", "--every", "1h")
    url = operate(app, *words)["url"].removeprefix("http://localhost")
    found = {}
    for signal in PINGS:
        assert client.post(f"{url}{signal}", data=b"x" * 5_000).status_code == 200
        with round_trips() as waits:
            answer = client.post(f"{url}{signal}", data=b"x" * 5_000)
        assert answer.status_code == 200
        found[signal] = len(waits)
    assert found == PINGS
