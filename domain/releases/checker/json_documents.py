"""Reads JSON with the line numbers of its values, in one pass and without recursion.

HAR files (HTTP Archive 1.2) contain requests that browsers and proxies recorded. In other JSON
documents, the following count as requests:

- a GraphQL request
- an object with a method and a URL, as in collections of requests
- a flat object that may be the body of a request
- a string that contains a command

Everything else, such as recorded responses, is ignored.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import chain, count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from domain.releases.checker.access_logs import RateCounter
from domain.releases.checker.distinctive_names import find_names_in_text
from domain.releases.checker.findings import (
    DetectedChange,
    UnreadableContentError,
    check_time_limit,
    iterate_within_limit,
)
from domain.releases.checker.graphql import check_graphql_request
from domain.releases.checker.request_lists import is_command_line
from domain.releases.checker.requests import HTTP_METHODS, Request, find_request_changes
from domain.releases.checker.shell_commands import check_shell

MAX_DEPTH = 200
#: Pattern for a complete token. Strings in a HAR file can contain whole web pages.
_TOKEN_PATTERN = re.compile(
    r'[ \t\r\n]*+("(?:[^"\\\x00-\x1f]|\\.|(?!))*+"|[{}\[\]:,]|-?[0-9][0-9.eE+-]*+|true|false|null)'
)
_SPACES_PATTERN = re.compile(r"[ \t\r\n]*+")
_INVALID_JSON = "The content is not valid JSON"
_URL_MEMBERS = ("url", "uri", "path", "requestUrl", "urlPath")
_BODY_MEMBERS = ("body", "data", "json", "requestBody")
#: Members that contain responses.
_RESPONSE_MEMBERS = frozenset({"response", "responses", "httpResponse"})
#: Members that occur in responses, but not in request bodies.
_RESPONSE_ONLY_FIELDS = frozenset({"id", "iid", "web_url", "created_at", "updated_at", "_links"})
#: Members that make up most of a HAR file and contain nothing about requests.
_SKIPPED_MEMBERS = frozenset(
    {"response", "timings", "cache", "cookies", "pages", "_initiator", "initiator"}
)
#: Parts of a path that identify the host of a URL as this service.
_OWN_PATHS = ("/api/v4/", "/api/graphql", "/-/", "/oauth/token")


class JsonValue(NamedTuple):
    """A JSON value, and the line on which it starts."""

    value: Any
    line: int

    def get_member(self, name: str) -> "JsonValue | None":
        """Return a member of an object, or None if the object has no such member."""
        return self.value.get(name) if isinstance(self.value, dict) else None

    @property
    def items(self) -> list["JsonValue"]:
        """The items of a list, or an empty list for other values."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """The string, or an empty string if the value is not a string."""
        return self.value if isinstance(self.value, str) else ""

    def get_text_member(self, name: str) -> str:
        """Return a member of an object if the member is a string, or an empty string otherwise."""
        found = self.get_member(name)
        return found.text if found else ""


#: Function that returns whether the value of a member is needed. Other values are skipped.
NameFilter = Callable[[str], bool]


class _JsonParser:
    """A parser that builds values from tokens."""

    def __init__(self, text: str, wanted: NameFilter) -> None:
        self._text = text
        self._wanted = wanted
        self._at = 0
        self._line = 1

    def parse_document(self) -> JsonValue:
        """Return the value that the whole text represents."""
        found = self._read_nested_value()
        if self._text[self._at :].strip(" \t\r\n"):
            raise self._build_error()
        return found

    def _read_token(self) -> str:
        found = _TOKEN_PATTERN.match(self._text, self._at)
        if found is None:
            raise self._build_error()
        self._line += self._text.count("\n", self._at, found.start(1))
        self._at = found.end()
        return found[1]

    def _build_error(self) -> UnreadableContentError:
        spaces = _SPACES_PATTERN.match(self._text, self._at)
        end = spaces.end() if spaces else self._at
        line = self._line + self._text.count("\n", self._at, end)
        return UnreadableContentError(_INVALID_JSON, line=line)

    def _read_nested_value(self) -> JsonValue:
        """Read a value with all its contents, using a stack of open containers."""
        stack: list[_OpenContainer] = []
        steps = iterate_within_limit(count())
        while True:
            next(steps)
            sign = self._read_token()
            if sign in "}]" and stack and stack[-1].can_end_with(sign):
                found = JsonValue(stack[-1].container, stack.pop().line)
            elif sign in "{[":
                stack.append(self._open_container(sign, stack))
                continue
            elif stack and stack[-1].expects_name:
                self._read_member_name(sign, stack[-1])
                continue
            else:
                found = JsonValue(self._read_scalar(sign, stack), self._line)
            if not stack:
                return found
            stack[-1].add_value(found)
            self._read_separator(stack)

    def _open_container(self, bracket: str, stack: list["_OpenContainer"]) -> "_OpenContainer":
        if len(stack) >= MAX_DEPTH:
            raise UnreadableContentError("The JSON is nested too deeply", line=self._line)
        if stack and stack[-1].expects_name:
            raise self._build_error()
        is_kept = not stack or (stack[-1].is_kept and stack[-1].is_value_kept)
        return _OpenContainer(bracket, self._line, is_kept=is_kept)

    def _read_member_name(self, bracket: str, open_container: "_OpenContainer") -> None:
        if not bracket.startswith('"') or self._read_token() != ":":
            raise self._build_error()
        open_container.set_next_name(self._decode_token(bracket))
        open_container.is_value_kept = self._wanted(open_container.name)

    def _read_scalar(self, bracket: str, stack: list["_OpenContainer"]) -> Any:
        if bracket in "}]:,":
            raise self._build_error()
        if stack and not (stack[-1].is_kept and stack[-1].is_value_kept):
            return None
        return self._decode_token(bracket)

    def _decode_token(self, bracket: str) -> Any:
        try:
            return json.loads(bracket)
        # The token may be a number such as 1.2.3, or a number with too many digits.
        except ValueError as error:
            raise self._build_error() from error

    def _read_separator(self, stack: list["_OpenContainer"]) -> None:
        """Read a comma, but leave a closing bracket for the next step."""
        before, line = self._at, self._line
        sign = self._read_token()
        if sign == ",":
            stack[-1].expect_next_value()
        elif sign in "}]":
            self._at, self._line = before, line
            stack[-1].is_full = True
        else:
            raise self._build_error()


class _OpenContainer:
    """An object or list that is being read."""

    def __init__(self, bracket: str, line: int, *, is_kept: bool) -> None:
        self.is_object = bracket == "{"
        self.line = line
        self.is_kept = is_kept
        self.is_value_kept = True
        self.container: Any = {} if self.is_object else []
        self.expects_name = self.is_object
        self.is_full = False
        self.name = ""
        self._is_behind_comma = False
        self._is_begun = False

    def can_end_with(self, bracket: str) -> bool:
        """Return whether a closing bracket can end the container at this position."""
        is_own = (bracket == "}") == self.is_object
        return is_own and not self._is_behind_comma and (self.is_full or not self._is_begun)

    def set_next_name(self, name: str) -> None:
        """Store the name of the next value."""
        self.name = name
        self.expects_name = False
        self._is_begun = True

    def add_value(self, json_value: JsonValue) -> None:
        """Add a value to the list, or to the object under the last stored name.

        Unneeded values are discarded.
        """
        self._is_behind_comma = False
        self._is_begun = True
        if not (self.is_kept and self.is_value_kept):
            return
        if self.is_object:
            self.container[self.name] = json_value
        else:
            self.container.append(json_value)

    def expect_next_value(self) -> None:
        """Require another member or item after a comma."""
        self._is_behind_comma = True
        self.expects_name = self.is_object


def parse_json_with_line_numbers(text: str, wanted: NameFilter = lambda _: True) -> JsonValue:
    """Parse JSON, and omit the values of members that are not needed.

    `wanted` returns whether the value of a member is needed, given its name. Raise
    UnreadableContentError if the text is not valid JSON.
    """
    return _JsonParser(text, wanted).parse_document()


def check_json(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect a JSON document.

    Raise UnreadableContentError if the document is not valid JSON.
    """
    document = parse_json_with_line_numbers(text)
    yield from check_graphql_request(text)
    yield from _check_flat_body(document)
    for each in iterate_within_limit(_iterate_values(document)):
        if isinstance(each.value, dict):
            yield from _check_request_object(each)
        elif is_command_line(each.text):
            # The document contains the command on a single line.
            for found in check_shell(each.text):
                yield found._replace(line=each.line)


def _iterate_values(document: JsonValue) -> Iterator[JsonValue]:
    """Yield a value with all its contents, except responses."""
    stack = [document]
    while stack:
        each = stack.pop()
        yield each
        if isinstance(each.value, dict):
            stack += [held for name, held in each.value.items() if name not in _RESPONSE_MEMBERS]
        stack += each.items


def _check_flat_body(document: JsonValue) -> Iterator[DetectedChange]:
    """Yield the changes that affect the members of an object if it may be a request body.

    It is not a request body if it contains nested objects or members of responses.
    """
    members = document.value
    if not isinstance(members, dict) or not _RESPONSE_ONLY_FIELDS.isdisjoint(members):
        return
    if any(isinstance(each.value, dict) for each in members.values()):
        return
    for name, value in members.items():
        yield from find_names_in_text(f'"{name}":', value.line)


def _check_request_object(json_value: JsonValue) -> Iterator[DetectedChange]:
    """Yield the changes that affect an object with a method and a URL."""
    url = next(
        (found for name in _URL_MEMBERS if (found := _find_url(json_value.get_member(name)))), None
    )
    method = json_value.get_text_member("method").upper()
    if url is None or method not in HTTP_METHODS:
        return
    check_time_limit()
    body = next((found for name in _BODY_MEMBERS if (found := json_value.get_member(name))), None)
    request = Request(
        method=method,
        url=url.text,
        line=url.line,
        body=_format_body(body),
        has_body=body is not None,
        headers=_list_header_names(
            json_value.get_member("headers") or json_value.get_member("header")
        ),
    )
    yield from find_request_changes(request)
    if request.body and "/graphql" in request.url:
        for each in check_graphql_request(request.body):
            yield each._replace(line=request.line)


def _find_url(json_value: JsonValue | None) -> JsonValue | None:
    """Return a URL, or the `raw` member of an object, where Postman stores URLs."""
    found = (
        json_value.get_member("raw")
        if json_value and isinstance(json_value.value, dict)
        else json_value
    )
    return found if found and found.text else None


def _format_body(json_value: JsonValue | None) -> str:
    if json_value is None or json_value.text:
        return json_value.text if json_value else ""
    raw = json_value.get_text_member("raw")
    return raw or json.dumps(_remove_line_numbers(json_value))


def _remove_line_numbers(json_value: JsonValue) -> Any:
    """Return a JSON value without line numbers.

    The depth limit of the reader also limits the recursion.
    """
    if isinstance(json_value.value, dict):
        return {name: _remove_line_numbers(each) for name, each in json_value.value.items()}
    return (
        [_remove_line_numbers(each) for each in json_value.items]
        if isinstance(json_value.value, list)
        else json_value.value
    )


def _list_header_names(json_value: JsonValue | None) -> frozenset[str]:
    if json_value is None:
        return frozenset()
    names: Mapping[str, Any] = json_value.value if isinstance(json_value.value, dict) else {}
    listed = (
        each.get_text_member("name") or each.get_text_member("key") for each in json_value.items
    )
    return frozenset(name.lower() for name in (*names, *listed) if name)


def check_har(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect the requests in a HAR file.

    Raise UnreadableContentError if the text is not a HAR file.
    """
    log = parse_json_with_line_numbers(
        text, wanted=lambda name: name not in _SKIPPED_MEMBERS
    ).get_member("log")
    entries = log.get_member("entries") if log else None
    if entries is None or not isinstance(entries.value, list):
        raise UnreadableContentError("The content is not a HAR file: it has no log.entries")
    own_hosts = {
        _get_host(_get_har_url(each))
        for each in iterate_within_limit(entries.items)
        if _is_service_url(_get_har_url(each))
    }
    rates = RateCounter()
    for number, entry in enumerate(iterate_within_limit(entries.items), start=1):
        request = _parse_har_request(entry, own_hosts)
        if request is None:
            continue
        for found in chain(
            find_request_changes(request),
            _check_graphql_body(request),
            rates.count_request(request, "", _parse_har_time(entry)),
        ):
            yield found._replace(request=number)


def _get_har_url(entry: JsonValue) -> str:
    request = entry.get_member("request")
    return request.get_text_member("url") if request else ""


def _is_service_url(url: str) -> bool:
    return any(each in url for each in _OWN_PATHS)


def _get_host(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _parse_har_request(entry: JsonValue, own_hosts: set[str]) -> Request | None:
    found = entry.get_member("request")
    url = found.get_member("url") if found else None
    if found is None or url is None or not url.text:
        return None
    sent = found.get_member("postData")
    return Request(
        method=found.get_text_member("method").upper() or "GET",
        url=url.text,
        line=url.line,
        body=sent.get_text_member("text") if sent else "",
        form=_parse_form(sent),
        headers=frozenset(
            each["name"].lower() for each in _parse_pairs(found.get_member("headers"))
        ),
        is_own_host=_get_host(url.text) in own_hosts,
    )


def _parse_form(json_value: JsonValue | None) -> dict[str, str]:
    if json_value is None:
        return {}
    return {each["name"]: each["value"] for each in _parse_pairs(json_value.get_member("params"))}


def _parse_pairs(json_value: JsonValue | None) -> Iterator[dict[str, str]]:
    for each in json_value.items if json_value else ():
        yield {"name": each.get_text_member("name"), "value": each.get_text_member("value")}


def _check_graphql_body(request: Request) -> Iterator[DetectedChange]:
    if request.body and "/graphql" in request.url:
        for found in check_graphql_request(request.body):
            yield found._replace(line=request.line)


def _parse_har_time(entry: JsonValue) -> datetime | None:
    try:
        return datetime.fromisoformat(entry.get_text_member("startedDateTime"))
    except ValueError:
        return None
