"""Remembers every secret that goes over the wire while tests run, to look for it in the logs.

All traffic of `requests` is watched, whoever sends it: our own clients, Authlib, requests-oauthlib
and python-gitlab. What goes another way is told by `remember` or `remember_in`: the program in
JavaScript, the cookies of a real browser.
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

#: What this service issues says by its beginning what it is, wherever it stands.
CREDENTIAL = re.compile(r"\bgb[a-z]-[0-9A-Za-z]{8,}")
#: The seed of a second factor, in the address that an application for codes reads.
_SEED = re.compile(r"[?&;]secret=([A-Z2-7]{16,})")
#: Fields of answers in JSON whose values nobody else may read.
_ISSUED = frozenset(
    {
        *("access_token", "refresh_token", "id_token", "registration_access_token", "token"),
        *("client_secret", "secret", "seed", "device_code", "user_code", "code"),
    }
)
#: Parameters by which somebody proves who they are. They count when they were accepted: what is
#: refused may be any word, and garbage of a test is no secret.
_PROOFS = frozenset(
    {"password", "new_password", "current_password", "client_secret", "code_verifier"}
)
#: A shorter value may stand in a log by accident.
_SHORTEST = 9
#: What a line of a log falls into; most secrets are one such word.
_WORD = re.compile(r"[\w\-.~+/=%]{9,}")


class SecretsSeen:
    """The secrets of one process of the tests."""

    def __init__(self) -> None:
        self.all: set[str] = set()

    def remember(self, secret: str | None) -> None:
        """Remember one."""
        if secret and len(secret) >= _SHORTEST:
            self.all.add(secret)

    def remember_in(self, value: Any) -> None:
        """Remember all that are somewhere in a value made of JSON."""
        for name, text in _texts(value):
            if name in _ISSUED:
                self.remember(text)
            self.all.update(CREDENTIAL.findall(text))
            self.all.update(_SEED.findall(text))

    def see(self, answer: requests.Response) -> None:
        """Remember what an answer issued, and what the request proved by."""
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
        """Return the lines of a log in which a secret can be read, with the secret's beginning."""
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
    """Return a body as what it says it is, or as its text."""
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
    """Yield every text in a value made of JSON, with the name that it has there."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, name)
    elif isinstance(value, str):
        yield name, value


#: Those of this process.
SECRETS = SecretsSeen()


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """See every answer that anybody gets by `requests`, for as long as the patch lasts."""
    send = HTTPAdapter.send

    def watched(self: HTTPAdapter, *args: Any, **options: Any) -> requests.Response:
        answer = send(self, *args, **options)
        if not options.get("stream"):
            SECRETS.see(answer)
        return answer

    monkeypatch.setattr(HTTPAdapter, "send", watched)
