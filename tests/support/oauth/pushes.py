"""Pushed authorization requests (RFC 9126)."""

from urllib.parse import urlencode

import requests

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.oauth_wire import STATE, Changes, changed, machine
from tests.support.service.live import LiveGatebell

PREFIX = "urn:ietf:params:oauth:request_uri:"


def request_form(client: ClientCredentials, **changes: Changes) -> list[tuple[str, str]]:
    form = {
        "client_id": client.client_id,
        "client_secret": client.secret,
        "redirect_uri": client.redirect_uri,
        "response_type": "code",
        "scope": client.scopes,
        "state": STATE,
    }
    return changed(form, changes)


def push(
    gatebell: LiveGatebell, client: ClientCredentials, /, **changes: Changes
) -> requests.Response:
    """Push a request, with the secret in the body unless it is removed."""
    form = request_form(client, **changes)
    return machine(gatebell).post(f"{gatebell.url}/oauth/par", data=form)


def pushed(gatebell: LiveGatebell, client: ClientCredentials, /, **changes: Changes) -> str:
    """Push a valid request; return the URL for the browser."""
    answer = push(gatebell, client, **changes)
    assert answer.status_code == 201, answer.text
    return address(gatebell, client, answer.json()["request_uri"])


def address(gatebell: LiveGatebell, client: ClientCredentials, uri: str, **more: str) -> str:
    query = urlencode({"client_id": client.client_id, "request_uri": uri, **more})
    return f"{gatebell.url}/oauth/authorize?{query}"
