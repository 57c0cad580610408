"""Reads access logs in common, combined or JSON format, and finds callers above rate limits."""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.releases.changes import Call, Kind
from domain.releases.checker.findings import Found, UnreadableContentError, numbered_lines
from domain.releases.checker.names import names_in_text
from domain.releases.checker.requests import API, Request, api_path, concerns_of, judge
from domain.releases.matching import Concern

#: Rate limits by path: the number of requests in a period, with the default settings.
RATES = {
    f"{API}/users": (300, timedelta(minutes=1)),
    f"{API}/users/:id": (300, timedelta(minutes=1)),
    f"{API}/projects": (2_000, timedelta(minutes=10)),
    f"{API}/projects/:id": (400, timedelta(minutes=1)),
    f"{API}/groups": (200, timedelta(minutes=1)),
    f"{API}/groups/:id": (400, timedelta(minutes=1)),
    f"{API}/groups/:id/projects": (600, timedelta(minutes=1)),
}
#: Pattern of `host ident user [time] "METHOD /path HTTP/1.1" …`, with an optional prefix.
_COMMON = re.compile(
    r'(?:^|\s)(\S+) \S+ (\S+) \[([^\]]{10,40})\] "([A-Z]{3,7}) (\S+)(?: HTTP/[0-9.]+)?"'
)
#: Maximum length of a line of an access log in characters. Longer lines are skipped.
_LONGEST = 64 * 1024
_TIME = "%d/%b/%Y:%H:%M:%S %z"
_REQUEST_LINE = re.compile(r"([A-Z]{3,7}) (\S+)(?: HTTP/[0-9.]+)?")
#: Names of members of a JSON line, in lower case without `_` and `-`.
_METHODS = ("method", "requestmethod", "httpmethod", "verb", "reqmethod")
_PATHS = ("requesturi", "uri", "url", "requesturl", "originalurl", "path", "requestpath", "target")
_REQUESTS = ("request", "req", "http", "httprequest", "requestline", "message")
_QUERIES = ("query", "querystring", "args", "params")
_TIMES = ("time", "timestamp", "@timestamp", "ts", "starttime", "startutc", "timeiso8601")
_CALLERS = ("remoteaddr", "clientip", "clienthost", "remoteip", "userid", "remoteuser", "username")


class Rates:
    """A counter of requests by caller and operation."""

    def __init__(self) -> None:
        """Initialize without any requests."""
        self._seen: dict[tuple[str, str], deque[datetime]] = {}

    def count(self, request: Request, caller: str, moment: datetime | None) -> Iterator[Found]:
        """Count a request; yield the rate limit that it exceeds."""
        path = api_path(request.parts.path)
        if moment is None or path is None or request.method not in {"GET", "HEAD"}:
            return
        for concern in concerns_of(path):
            if _is_limit(concern) and self._is_above(concern.call, caller, _in_utc(moment)):
                reason = f"More requests to {concern.call.path} than the rate limit allows"
                yield Found(concern.change, request.line, reason)

    def _is_above(self, call: Call, caller: str, moment: datetime) -> bool:
        most, window = RATES[call.path]
        seen = self._seen.setdefault((caller, call.path), deque(maxlen=most))
        is_above = len(seen) == most and timedelta() <= moment - seen[0] < window
        seen.append(moment)
        if is_above:
            seen.clear()  # Report only once for a series of requests.
        return is_above


def _is_limit(concern: Concern) -> bool:
    call = concern.call
    is_of_requests = call.when is None and not call.fields
    return concern.change.kind is Kind.LIMIT_APPLIED and is_of_requests and call.path in RATES


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def looks_like_log(line: str) -> bool:
    """Return whether a line belongs to an access log."""
    line = line[:_LONGEST]
    return bool(_COMMON.search(line)) or _json_request(line, 1) is not None


def check_access_log(text: str) -> Iterator[Found]:
    """Yield the changes that affect the requests of an access log.

    Raise UnreadableContentError if no line belongs to an access log.
    """
    rates, is_read = Rates(), False
    for number, line in numbered_lines(text):
        if len(line) > _LONGEST:
            continue
        found = _common_request(line, number) or _json_request(line, number)
        if found is None:
            continue
        is_read = True
        request, caller, moment = found
        yield from judge(request)
        yield from rates.count(request, caller, moment)
        yield from names_in_text(line.rpartition('"')[2], number, only="tls-versions")
    if not is_read and text.strip():
        raise UnreadableContentError("The content is not an access log", line=1)


_Read = tuple[Request, str, datetime | None]


def _common_request(line: str, number: int) -> _Read | None:
    found = _COMMON.search(line)
    if found is None:
        return None
    host, user, moment, method, url = found.groups()
    request = Request(method=method, url=url, line=number, has_body=False)
    return request, f"{host} {user}", _common_time(moment)


def _common_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _TIME).astimezone(UTC)
    except ValueError:
        return None


def _json_request(line: str, number: int) -> _Read | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = _members(given) if isinstance(given, dict) else {}
    method, url = _method_and_url(found)
    if not method or not url:
        return None
    request = Request(
        method=method.upper(),
        url=_with_query(url, _first(found, _QUERIES)),
        line=number,
        has_body=False,
        form=_listed(_first(found, _QUERIES)),
    )
    return request, str(_first(found, _CALLERS)), _time(_first(found, _TIMES))


def _members(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members by normalized names, including members of a nested request object."""
    found = {_plain(name): value for name, value in given.items()}
    for name in _REQUESTS:
        if isinstance(found.get(name), dict):
            found = {**found, **{_plain(each): value for each, value in found[name].items()}}
    return found


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9@]", "", name.lower())


def _first(found: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((found[name] for name in names if found.get(name)), "")


def _method_and_url(found: Mapping[str, Any]) -> tuple[str, str]:
    method, url = _first(found, _METHODS), _first(found, _PATHS)
    if isinstance(method, str) and isinstance(url, str) and method and url:
        return method, url
    for name in _REQUESTS:
        value = found.get(name)
        if isinstance(value, str) and (line := _REQUEST_LINE.match(value)):
            return line[1], line[2]
    return "", ""


def _with_query(url: str, query: Any) -> str:
    return f"{url}?{query}" if isinstance(query, str) and query and "?" not in url else url


def _listed(query: Any) -> dict[str, str]:
    """Return parameters that a log stores as an object, or as a list of `key` and `value`."""
    if isinstance(query, dict):
        return {str(name): str(value) for name, value in query.items()}
    if not isinstance(query, list):
        return {}
    pairs = [each for each in query if isinstance(each, dict)]
    return {str(each.get("key", "")): str(each.get("value", "")) for each in pairs}


def _time(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, tz=UTC)
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
