"""Reads access logs in common, combined or JSON format, and finds callers above rate limits."""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.releases.call_matches import CallMatch
from domain.releases.changes import CallPattern, ReleaseChangeKind
from domain.releases.checker.distinctive_names import find_names_in_text
from domain.releases.checker.findings import (
    DetectedChange,
    UnreadableContentError,
    read_numbered_lines,
)
from domain.releases.checker.requests import (
    API_PATH,
    Request,
    find_api_path,
    find_path_matches,
    find_request_changes,
)

#: Default rate limits by path: the maximum number of requests in a period.
RATE_LIMITS = {
    f"{API_PATH}/users": (300, timedelta(minutes=1)),
    f"{API_PATH}/users/:id": (300, timedelta(minutes=1)),
    f"{API_PATH}/projects": (2_000, timedelta(minutes=10)),
    f"{API_PATH}/projects/:id": (400, timedelta(minutes=1)),
    f"{API_PATH}/groups": (200, timedelta(minutes=1)),
    f"{API_PATH}/groups/:id": (400, timedelta(minutes=1)),
    f"{API_PATH}/groups/:id/projects": (600, timedelta(minutes=1)),
}
#: Pattern of `host ident user [time] "METHOD /path HTTP/1.1" …`, with an optional prefix.
_COMMON_LOG_PATTERN = re.compile(
    r'(?:^|\s)(\S+) \S+ (\S+) \[([^\]]{10,40})\] "([A-Z]{3,7}) (\S+)(?: HTTP/[0-9.]+)?"'
)
#: Maximum length in characters of a line in an access log. Longer lines are skipped.
_MAX_LINE_LENGTH = 64 * 1024
_COMMON_TIME_FORMAT = "%d/%b/%Y:%H:%M:%S %z"
_REQUEST_LINE_PATTERN = re.compile(r"([A-Z]{3,7}) (\S+)(?: HTTP/[0-9.]+)?")
#: Names of members in a JSON line, in lower case without `_` and `-`.
_METHOD_KEYS = ("method", "requestmethod", "httpmethod", "verb", "reqmethod")
_PATH_KEYS = (
    "requesturi",
    "uri",
    "url",
    "requesturl",
    "originalurl",
    "path",
    "requestpath",
    "target",
)
_REQUEST_KEYS = ("request", "req", "http", "httprequest", "requestline", "message")
_QUERY_KEYS = ("query", "querystring", "args", "params")
_TIME_KEYS = ("time", "timestamp", "@timestamp", "ts", "starttime", "startutc", "timeiso8601")
_CALLER_KEYS = (
    "remoteaddr",
    "clientip",
    "clienthost",
    "remoteip",
    "userid",
    "remoteuser",
    "username",
)


class RateCounter:
    """A counter of requests for each caller and operation."""

    def __init__(self) -> None:
        """Initialize an empty counter."""
        self._seen: dict[tuple[str, str], deque[datetime]] = {}

    def count_request(
        self, request: Request, caller: str, moment: datetime | None
    ) -> Iterator[DetectedChange]:
        """Count a request, and yield the rate limits that the request exceeds."""
        path = find_api_path(request.url_parts.path)
        if moment is None or path is None or request.method not in {"GET", "HEAD"}:
            return
        for concern in find_path_matches(path):
            if _is_rate_limit(concern) and self._exceeds_rate_limit(
                concern.call, caller, _convert_to_utc(moment)
            ):
                reason = f"More requests to {concern.call.path} than the rate limit allows"
                yield DetectedChange(concern.change, request.line, reason)

    def _exceeds_rate_limit(self, call: CallPattern, caller: str, moment: datetime) -> bool:
        most, window = RATE_LIMITS[call.path]
        seen = self._seen.setdefault((caller, call.path), deque(maxlen=most))
        is_above = len(seen) == most and timedelta() <= moment - seen[0] < window
        seen.append(moment)
        if is_above:
            seen.clear()  # Only one finding is reported for a series of requests.
        return is_above


def _is_rate_limit(call_match: CallMatch) -> bool:
    call = call_match.call
    limits_all_requests = call.when is None and not call.fields
    return (
        call_match.change.kind is ReleaseChangeKind.LIMIT_APPLIED
        and limits_all_requests
        and call.path in RATE_LIMITS
    )


def _convert_to_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def is_access_log_line(line: str) -> bool:
    """Return whether a line belongs to an access log."""
    line = line[:_MAX_LINE_LENGTH]
    return bool(_COMMON_LOG_PATTERN.search(line)) or _parse_json_line(line, 1) is not None


def check_access_log(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect the requests in an access log.

    Raise UnreadableContentError if no line belongs to an access log.
    """
    rates, is_read = RateCounter(), False
    for number, line in read_numbered_lines(text):
        if len(line) > _MAX_LINE_LENGTH:
            continue
        found = _parse_common_line(line, number) or _parse_json_line(line, number)
        if found is None:
            continue
        is_read = True
        request, caller, moment = found
        yield from find_request_changes(request)
        yield from rates.count_request(request, caller, moment)
        yield from find_names_in_text(line.rpartition('"')[2], number, only="tls-versions")
    if not is_read and text.strip():
        raise UnreadableContentError("The content is not an access log", line=1)


_LoggedRequest = tuple[Request, str, datetime | None]


def _parse_common_line(line: str, number: int) -> _LoggedRequest | None:
    found = _COMMON_LOG_PATTERN.search(line)
    if found is None:
        return None
    host, user, moment, method, url = found.groups()
    request = Request(method=method, url=url, line=number, has_body=False)
    return request, f"{host} {user}", _parse_common_time(moment)


def _parse_common_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _COMMON_TIME_FORMAT).astimezone(UTC)
    except ValueError:
        return None


def _parse_json_line(line: str, number: int) -> _LoggedRequest | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = _normalize_members(given) if isinstance(given, dict) else {}
    method, url = _find_method_and_url(found)
    if not method or not url:
        return None
    request = Request(
        method=method.upper(),
        url=_append_query(url, _find_first_value(found, _QUERY_KEYS)),
        line=number,
        has_body=False,
        form=_parse_parameters(_find_first_value(found, _QUERY_KEYS)),
    )
    return (
        request,
        str(_find_first_value(found, _CALLER_KEYS)),
        _parse_json_time(_find_first_value(found, _TIME_KEYS)),
    )


def _normalize_members(given_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a JSON log line by normalized name.

    The members of nested request objects are included.
    """
    found = {_normalize_name(name): value for name, value in given_values.items()}
    for name in _REQUEST_KEYS:
        if isinstance(found.get(name), dict):
            found = {
                **found,
                **{_normalize_name(each): value for each, value in found[name].items()},
            }
    return found


def _normalize_name(name: str) -> str:
    return re.sub("[^a-z0-9@]", "", name.lower())


def _find_first_value(log_fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((log_fields[name] for name in names if log_fields.get(name)), "")


def _find_method_and_url(log_fields: Mapping[str, Any]) -> tuple[str, str]:
    method, url = (
        _find_first_value(log_fields, _METHOD_KEYS),
        _find_first_value(log_fields, _PATH_KEYS),
    )
    if isinstance(method, str) and isinstance(url, str) and method and url:
        return method, url
    for name in _REQUEST_KEYS:
        value = log_fields.get(name)
        if isinstance(value, str) and (line := _REQUEST_LINE_PATTERN.match(value)):
            return line[1], line[2]
    return "", ""


def _append_query(url: str, query: Any) -> str:
    return f"{url}?{query}" if isinstance(query, str) and query and "?" not in url else url


def _parse_parameters(query: Any) -> dict[str, str]:
    """Return parameters from an object, or from a list of objects with `key` and `value`."""
    if isinstance(query, dict):
        return {str(name): str(value) for name, value in query.items()}
    if not isinstance(query, list):
        return {}
    pairs = [each for each in query if isinstance(each, dict)]
    return {str(each.get("key", "")): str(each.get("value", "")) for each in pairs}


def _parse_json_time(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, tz=UTC)
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
