"""Tests of the number of database round trips per request, which take most of its time.

The numbers are the current ones, and a change that increases one needs a reason. The begin and the
end of a transaction are one round trip each.
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
    """Represents alice's application, with everything that its requests need."""

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


def test_requests_take_the_expected_number_of_round_trips(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine, settings would be read while the round trips are counted.
    monkeypatch.setattr("web.services._REFRESH_INTERVAL_SECONDS", 600.0)
    caller, found = Caller(app, client), {}
    for name, (request, _) in REQUESTS.items():
        request(caller)  # Prepares statements, and records uses that are recorded once a minute.
        with round_trips() as waits:
            answer = request(caller)
        assert answer.status_code in {200, 400}, name
        found[name] = len(waits)
    assert found == {name: most for name, (_, most) in REQUESTS.items()}


class Sender:
    """Represents a monitoring system that repeats a report only on request."""

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
    """Return a webhook with this number of alerts, which are as short as possible."""
    name = {"startsAt": "2026-11-21T07:52:39Z"}
    return webhook(*({**name, "labels": {"alertname": f"{mark}{n}"}} for n in range(count)))


#: The kind of integration, a body that depends on the mark, and the number of round trips.
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
def test_the_round_trips_of_a_delivery_do_not_depend_on_its_items(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine, settings would be read while the round trips are counted. A stored duration
    # above 32 ms would be sent as a longer type, for which the statement is prepared again.
    monkeypatch.setattr("web.services._REFRESH_INTERVAL_SECONDS", 600.0)
    monkeypatch.setattr("domain.alerts.storing.inbound_delivery._MAX_DURATION_MICROSECONDS", 1)
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


#: Signals of a job while its heartbeat is up, with the number of round trips.
PINGS = {"": 1, "/start": 1, "/log": 1, "/0": 1}


@pytest.mark.long
def test_a_ping_takes_one_round_trip(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.services._REFRESH_INTERVAL_SECONDS", 600.0)
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
