"""Judges a request over HTTP, as traffic, a list or a command line has it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from domain.releases.changes import Change, Kind
from domain.releases.checker.findings import Found
from domain.releases.checker.parameters import Known, holds
from domain.releases.checker.routes import api_path, concerns_of, is_legacy_page, resolved
from domain.releases.matching import Concern
from domain.releases.schedule import BY_ID, SCHEDULE

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_GRAPHQL = "/api/graphql"
#: Headers with types of tokens that GraphQL takes no more.
_OTHER_TOKENS = frozenset({"deploy-token"})
_PROXY = re.compile(r"/dependency_proxy/containers/")
_UNKNOWN_URL = SplitResult("", "", "", "", "")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request over HTTP, as far as it is known."""

    method: str
    #: Path with query; with or without scheme and host.
    url: str
    line: int
    body: str = ""
    #: Fields of a form that are known one by one.
    form: Mapping[str, str] = field(default_factory=dict)
    #: False where only the first line of the request is known.
    has_body: bool = True
    headers: frozenset[str] = frozenset()
    #: Whether the host is that of the service.
    is_own_host: bool = True

    @property
    def parts(self) -> SplitResult:
        """Return the parts of the URL; all are empty if it is none."""
        try:
            return urlsplit(resolved(self.url))
        except ValueError:
            return _UNKNOWN_URL


def judge(request: Request) -> Iterator[Found]:
    """Yield what changes for a request."""
    parts = request.parts
    path = parts.path
    of_api = api_path(path)
    if of_api is not None:
        yield from _of_api(request, of_api, parts.query)
    elif _GRAPHQL in path:
        yield from _of_graphql(request)
    else:
        yield from _of_pages(request, path)


def _of_api(request: Request, path: str, query: str) -> Iterator[Found]:
    concerns = concerns_of(path)
    if not concerns:
        return
    known = known_parameters(request, query)
    for concern in concerns:
        if reason := reason_of(concern, request.method, known):
            yield Found(concern.change, request.line, reason.text, reason.is_certain)


def known_parameters(request: Request, query: str) -> Known:
    """Return what is known of the parameters of query and body."""
    known = Known()
    known.add_query(query)
    for name, value in request.form.items():
        known.add(name, value)
    if request.body:
        add_body(known, request.body)
    is_complete = request.has_body or request.method in _READING
    known.is_open = known.is_open or not is_complete
    return known


def add_body(known: Known, body: str) -> None:
    """Add the parameters of a body, JSON or a form."""
    if body.lstrip()[:1] in {"{", "["}:
        found = json_value(body)
        if isinstance(found, dict):
            known.add_object(found)
        else:
            known.is_open = True
        return
    known.add_query(body)


def json_value(text: str) -> Any:
    """Return the value of a JSON text, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class Reason(NamedTuple):
    """Why a request is concerned."""

    text: str
    #: Whether all that decides is known.
    is_certain: bool = True


def reason_of(concern: Concern, method: str, known: Known) -> Reason | None:
    """Return why a request is concerned, or None."""
    call = concern.call
    if call.methods and method not in call.methods:
        return None
    # A method that is none may be anything, and what is handed in is not repeated.
    where = f"{method} {call.path}" if method in METHODS else call.path
    if call.when is not None:
        return _by_condition(concern, where, known)
    if call.attributes or call.fields:
        # Nobody knows whether a caller reads the field of a response.
        sent = [] if method in _READING else sorted(known.values.keys() & {*call.attributes})
        return Reason(f"{where} with {', '.join(sent)}") if sent else None
    # A limit of requests is found by their times (`domain/releases/checker/rates.py`).
    return None if concern.change.kind is Kind.LIMIT_APPLIED else Reason(where)


def _by_condition(concern: Concern, where: str, known: Known) -> Reason | None:
    condition = concern.call.when
    if condition is None:
        return None
    if holds(condition, known):
        return Reason(f"{where}: {condition}")
    # The operation goes, and nothing says that none of its parameters was sent.
    is_gone = concern.change.kind is Kind.OPERATION_GONE
    return Reason(where, is_certain=False) if is_gone and known.is_open else None


def _of_graphql(request: Request) -> Iterator[Found]:
    if not _OTHER_TOKENS.isdisjoint(request.headers):
        reason = f"{_GRAPHQL} with the header Deploy-Token"
        yield Found(BY_ID["graphql-token-types"], request.line, reason)


def _of_pages(request: Request, path: str) -> Iterator[Found]:
    for change in _FIXED.get(path.rstrip("/"), ()):
        if request.method in _READING:
            yield Found(change, request.line, f"GET {path.rstrip('/')}")
    if _PROXY.search(path):
        reason = "A pull through the dependency proxy"
        yield Found(BY_ID["dependency-proxy-scopes"], request.line, reason)
    is_read = request.method in _READING and request.is_own_host
    if is_read and is_legacy_page(unquote(path)):
        reason = "A page of a project without /-/"
        yield Found(BY_ID["legacy-page-urls"], request.line, reason)


def _fixed_paths() -> Mapping[str, tuple[Change, ...]]:
    """Return the changes of paths without variables outside the API."""
    found: dict[str, tuple[Change, ...]] = {}
    for change in SCHEDULE:
        for call in change.calls:
            if not call.path.startswith("/api/") and not {":", "*"} & {*call.path}:
                found[call.path] = (*found.get(call.path, ()), change)
    return found


_FIXED = _fixed_paths()
