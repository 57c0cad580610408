"""Reads HAR files, in which browsers and proxies keep requests (HTTP Archive 1.2)."""

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlsplit

from domain.releases.checker.deadline import paced
from domain.releases.checker.findings import Found, UnreadableContentError
from domain.releases.checker.graphql import check_graphql_request
from domain.releases.checker.json_events import Json, read_json
from domain.releases.checker.rates import Rates
from domain.releases.checker.requests import Request, judge

#: What takes most of a file and says nothing about what a consumer sends.
_UNWANTED = frozenset(
    {"response", "timings", "cache", "cookies", "pages", "_initiator", "initiator"}
)
#: A host with one of these in the path of a URL is the service.
_OWN_PATHS = ("/api/v4/", "/api/graphql", "/-/", "/oauth/token")


def check_har(text: str) -> Iterator[Found]:
    """Yield what changes for the requests of a HAR file; raise UnreadableContentError."""
    log = read_json(text, wanted=lambda name: name not in _UNWANTED).get("log")
    entries = log.get("entries") if log else None
    if entries is None or not isinstance(entries.value, list):
        raise UnreadableContentError("The content is not a HAR file: it has no log.entries")
    own_hosts = {_host(_url(each)) for each in paced(entries.items) if _is_own(_url(each))}
    rates = Rates()
    for entry in paced(entries.items):
        request = _request(entry, own_hosts)
        if request is None:
            continue
        yield from judge(request)
        yield from _graphql(request)
        yield from rates.count(request, "", _time(entry))


def _url(entry: Json) -> str:
    request = entry.get("request")
    return request.text_of("url") if request else ""


def _is_own(url: str) -> bool:
    return any(each in url for each in _OWN_PATHS)


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _request(entry: Json, own_hosts: set[str]) -> Request | None:
    found = entry.get("request")
    url = found.get("url") if found else None
    if found is None or url is None or not url.text:
        return None
    sent = found.get("postData")
    return Request(
        method=found.text_of("method").upper() or "GET",
        url=url.text,
        line=url.line,
        body=sent.text_of("text") if sent else "",
        form=_form(sent),
        headers=frozenset(each["name"].lower() for each in _pairs(found.get("headers"))),
        is_own_host=_host(url.text) in own_hosts,
    )


def _form(sent: Json | None) -> dict[str, str]:
    if sent is None:
        return {}
    return {each["name"]: each["value"] for each in _pairs(sent.get("params"))}


def _pairs(listed: Json | None) -> Iterator[dict[str, str]]:
    for each in listed.items if listed else ():
        yield {"name": each.text_of("name"), "value": each.text_of("value")}


def _graphql(request: Request) -> Iterator[Found]:
    if request.body and "/graphql" in request.url:
        for found in check_graphql_request(request.body):
            yield found._replace(line=request.line)


def _time(entry: Json) -> datetime | None:
    try:
        return datetime.fromisoformat(entry.text_of("startedDateTime"))
    except ValueError:
        return None
