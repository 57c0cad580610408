"""Reads JSON that is no HAR file and no log: what says of itself that it is sent.

That is a request of GraphQL, an object with a method and a URL as collections of requests have, the
flat body of a request, and a command in a text. All else is data, such as recorded responses, and
nobody sends it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from domain.releases.checker.deadline import go_on, paced
from domain.releases.checker.findings import Found
from domain.releases.checker.graphql import check_graphql_request
from domain.releases.checker.json_events import Json, read_json
from domain.releases.checker.names import names_in_text
from domain.releases.checker.request_lists import looks_like_command
from domain.releases.checker.requests import METHODS, Request, judge
from domain.releases.checker.shell import check_shell

_URLS = ("url", "uri", "path", "requestUrl", "urlPath")
_BODIES = ("body", "data", "json", "requestBody")
#: Members that hold what a server answered.
_ANSWERS = frozenset({"response", "responses", "httpResponse"})
#: What the objects of responses have, and the bodies of requests have not.
_OF_RESPONSES = frozenset({"id", "iid", "web_url", "created_at", "updated_at", "_links"})


def check_json(text: str) -> Iterator[Found]:
    """Yield what changes for a JSON document; raise UnreadableContentError."""
    document = read_json(text)
    yield from check_graphql_request(text)
    yield from _flat_body(document)
    for each in paced(_values(document)):
        if isinstance(each.value, dict):
            yield from _request(each)
        elif looks_like_command(each.text):
            # The lines of a text are all in one line of the document.
            for found in check_shell(each.text):
                yield found._replace(line=each.line)


def _values(document: Json) -> Iterator[Json]:
    """Yield a value with all that it holds, except answers."""
    stack = [document]
    while stack:
        each = stack.pop()
        yield each
        if isinstance(each.value, dict):
            stack += [held for name, held in each.value.items() if name not in _ANSWERS]
        stack += each.items


def _flat_body(document: Json) -> Iterator[Found]:
    """Yield the names in what can be the body of a request: plain members, none of a response."""
    members = document.value
    if not isinstance(members, dict) or not _OF_RESPONSES.isdisjoint(members):
        return
    if any(isinstance(each.value, dict) for each in members.values()):
        return
    for name, value in members.items():
        yield from names_in_text(f'"{name}":', value.line)


def _request(given: Json) -> Iterator[Found]:
    """Yield what changes for an object with a method and a URL."""
    url = next((found for name in _URLS if (found := _url(given.get(name)))), None)
    method = given.text_of("method").upper()
    if url is None or method not in METHODS:
        return
    go_on()
    body = next((found for name in _BODIES if (found := given.get(name))), None)
    request = Request(
        method=method,
        url=url.text,
        line=url.line,
        body=_body(body),
        has_body=body is not None,
        headers=_headers(given.get("headers") or given.get("header")),
    )
    yield from judge(request)
    if request.body and "/graphql" in request.url:
        for each in check_graphql_request(request.body):
            yield each._replace(line=request.line)


def _url(given: Json | None) -> Json | None:
    """Return a URL, which Postman has as `raw` of an object."""
    found = given.get("raw") if given and isinstance(given.value, dict) else given
    return found if found and found.text else None


def _body(given: Json | None) -> str:
    if given is None or given.text:
        return given.text if given else ""
    raw = given.text_of("raw")
    return raw or json.dumps(_plain(given))


def _plain(given: Json) -> Any:
    """Return a value without the lines of its parts; it is at most as deep as the reader lets."""
    if isinstance(given.value, dict):
        return {name: _plain(each) for name, each in given.value.items()}
    return [_plain(each) for each in given.items] if isinstance(given.value, list) else given.value


def _headers(given: Json | None) -> frozenset[str]:
    if given is None:
        return frozenset()
    names: Mapping[str, Any] = given.value if isinstance(given.value, dict) else {}
    listed = (each.text_of("name") or each.text_of("key") for each in given.items)
    return frozenset(name.lower() for name in (*names, *listed) if name)
