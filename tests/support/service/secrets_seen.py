"""Remembers every secret in the traffic of the tests, to search for it in logs.

All traffic of `requests` is watched: our own clients, Authlib, requests-oauthlib and python-gitlab.
Other clients, such as programs in JavaScript and real browsers, call `remember` or `remember_in`.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from requests.adapters import HTTPAdapter

#: Pattern of credentials of this service, which have a prefix.
CREDENTIAL = re.compile(r"\bgb[a-z]-[0-9A-Za-z]{8,}")
#: Seed of a second factor in the URL that an authenticator app reads.
_SEED = re.compile(r"[?&;]secret=([A-Z2-7]{16,})")
#: Fields of JSON responses whose values are secret.
_ISSUED = frozenset(
    {
        *("access_token", "refresh_token", "id_token", "registration_access_token", "token"),
        *("client_secret", "secret", "seed", "device_code", "user_code", "code"),
    }
)
#: Parameters that authenticate a user or client. Only accepted values count, since rejected values
#: may be any word.
_PROOFS = frozenset(
    {"password", "new_password", "current_password", "client_secret", "code_verifier"}
)
#: Minimum length of a secret: a shorter value may be in a log by accident.
_SHORTEST = 9
#: Words of a log line; most secrets are a single word.
_WORD = re.compile(r"[\w\-.~+/=%]{9,}")


class SecretsSeen:
    """The secrets of a process of the tests."""

    def __init__(self) -> None:
        self.all: set[str] = set()

    def remember(self, secret: str | None) -> None:
        """Remember a secret."""
        if secret and len(secret) >= _SHORTEST:
            self.all.add(secret)

    def remember_in(self, value: Any) -> None:
        """Remember all secrets anywhere in a JSON value."""
        for name, text in _texts(value):
            if name in _ISSUED:
                self.remember(text)
            self.all.update(CREDENTIAL.findall(text))
            self.all.update(_SEED.findall(text))

    def see(self, answer: requests.Response) -> None:
        """Remember the credentials that a response issued and the request used."""
        self.remember_in(_content(_text_of(answer.content), answer.headers.get("Content-Type", "")))
        for cookie in answer.cookies:
            self.remember(cookie.value)
        self.remember(_parameters(urlsplit(answer.headers.get("Location", "")).query).get("code"))
        if answer.ok:
            self._see_proofs(answer.request)

    def _see_proofs(self, request: requests.PreparedRequest) -> None:
        form = _content(_text_of(request.body), request.headers.get("Content-Type", ""))
        if isinstance(form, dict):
            for name in _PROOFS & form.keys():
                self.remember(str(form[name]))
        scheme, _, credentials = _text_of(request.headers.get("Authorization")).partition(" ")
        if scheme.lower() == "basic":
            self.remember(_password_in(credentials))

    def in_log(self, log: str) -> list[str]:
        """Return the lines of a log that contain a secret, with the start of the secret."""
        words = "\n".join({word for line in log.splitlines() for word in _WORD.findall(line)})
        found = {
            secret for secret in self.all if secret in (words if _WORD.fullmatch(secret) else log)
        } | set(CREDENTIAL.findall(words))
        return [
            f"{secret[:6]}…: {line}"
            for secret in sorted(found)
            for line in log.splitlines()
            if secret in line
        ]


def _text_of(body: Any) -> str:
    return body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")


def _parameters(query: str) -> dict[str, str]:
    return dict(parse_qsl(query))


def _content(text: str, kind: str) -> Any:
    """Return a body parsed by its content type, or its text."""
    if kind.startswith("application/x-www-form-urlencoded"):
        return _parameters(text)
    if kind.startswith("application/json"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _password_in(encoded: str) -> str | None:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:
        return None


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in a JSON value with its name."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, name)
    elif isinstance(value, str):
        yield name, value


#: Secrets of this process.
SECRETS = SecretsSeen()


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch all responses to `requests` while the patch is active."""
    send = HTTPAdapter.send

    def watched(self: HTTPAdapter, *args: Any, **options: Any) -> requests.Response:
        answer = send(self, *args, **options)
        if not options.get("stream"):
            SECRETS.see(answer)
        return answer

    monkeypatch.setattr(HTTPAdapter, "send", watched)
