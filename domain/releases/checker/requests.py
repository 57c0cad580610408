"""Checks HTTP requests from traffic, lists or command lines.

The entries of the schedule for a path are found in a time that is independent of its size. Legacy
URLs of pages have no separate entries and are recognized by their form.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache, singledispatch
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from domain.releases.changes import Call, Change, Kind
from domain.releases.checker.findings import Found
from domain.releases.conditions import (
    AboveOne,
    Condition,
    FilteredUnlikeSorted,
    Given,
    Longer,
    Missing,
    Shorter,
    nested_names,
)
from domain.releases.matching import Concern
from domain.releases.schedule import BY_ID, SCHEDULE

API = "/api/v4"
#: Placeholder for the part of a path that is known only at run time.
UNKNOWN = "\x00"
_API_VARIABLE = re.compile(
    r"\$(?:env:)?\{?CI_API_V4_URL\}?|\{\{ ?(?:api_url|gitlab_api(?:_url)?) ?\}\}"
)
_BASE_VARIABLE = re.compile(
    r"^\"?(?:\$\{?\w+\}?|\{\{ ?\w+ ?\}\})/(users|projects|groups|runners|jobs|user|application)\b"
)
#: Maximum number of segments of a path in the schedule.
_MOST_SEGMENTS = 40


@dataclass
class _Node:
    """A segment of the paths of the schedule, with the segments that can follow it."""

    named: dict[str, "_Node"] = field(default_factory=dict)
    variable: "_Node | None" = None
    concerns: list[Concern] = field(default_factory=list)

    def next_for(self, segment: str) -> Iterator["_Node"]:
        """Yield the nodes that match a segment."""
        if segment in self.named:
            yield self.named[segment]
        if self.variable is not None and segment:
            yield self.variable


@cache
def _tree() -> _Node:
    root = _Node()
    for change in SCHEDULE:
        for call in change.calls:
            # Paths with an open end are pages (`is_legacy_page`).
            if not call.path.endswith("*"):
                _leaf(root, segments_of(call.path)).concerns.append(Concern(change, call))
    return root


def _leaf(node: _Node, segments: Sequence[str]) -> _Node:
    for segment in segments:
        if segment.startswith(":"):
            node.variable = node.variable or _Node()
            node = node.variable
        else:
            node = node.named.setdefault(segment, _Node())
    return node


def segments_of(path: str) -> list[str]:
    """Return the segments of a path, ignoring slashes at its ends."""
    return path.strip("/").split("/", _MOST_SEGMENTS)


def concerns_of(path: str) -> list[Concern]:
    """Return the entries for a path with any method, more specific ones first."""
    nodes = [_tree()]
    for segment in segments_of(path):
        nodes = [following for node in nodes for following in node.next_for(segment)]
        if not nodes:
            return []
    return [concern for node in nodes for concern in node.concerns]


def resolved(url: str) -> str:
    """Return a URL with /api/v4 in place of variables that contain its address.

    These are `$CI_API_V4_URL`, and any variable before a path that only the API has.
    """
    url = _API_VARIABLE.sub(API, url)
    if API in url:
        return url
    return _BASE_VARIABLE.sub(rf"{API}/\1", url)


def api_path(path: str) -> str | None:
    """Return the part of a path that starts with /api/v4, or None."""
    at = path.find(f"{API}/")
    return None if at < 0 else path[at:]


def named_segments(call: Call) -> list[str]:
    """Return the constant segments of an API path."""
    return [
        each for each in segments_of(call.path.removeprefix(API)) if each and each[0] not in ":*"
    ]


#: Pages of a project, whose URLs contain `/-/` before this word.
_PAGES = (
    "activity|alert_management|alerts|artifacts|badges|blame|blob|boards|branches|builds|"
    "ci|clusters|commit|commits|compare|container_registry|cycle_analytics|deploy_keys|"
    "deployments|edit|environments|error_tracking|feature_flags|find_file|forks|graphs|"
    "hooks|import|incidents|issues|jobs|labels|logs|merge_requests|metrics|milestones|mirror|"
    "network|packages|pages|pipeline_schedules|pipelines|project_members|protected_branches|"
    "protected_tags|raw|refs|releases|repository|runners|security|serverless|services|settings|"
    "snippets|starrers|tags|terraform|tracing|tree|triggers|usage_quotas|value_stream_analytics|"
    "variables|web_ide|wikis"
)
#: First segments of paths outside of projects.
_OTHERS = (
    r"-|\.well-known|admin|api|assets|dashboard|explore|files|groups|health_check|healthz|help|"
    "import|invites|jwt|login|metrics|oauth|profile|projects|public|readyz|registry|s|search|"
    "snippets|static|unsubscribes|uploads|user|users|v2"
)
_LEGACY = re.compile(
    rf"/(?!(?:{_OTHERS})/)[\w.][\w.-]*+(?:/(?!-/|(?:{_PAGES})(?:/|$))[\w.][\w.-]*+){{1,20}}"
    rf"/(?:{_PAGES})(?:/.*)?",
    re.DOTALL,
)
#: Maximum length of the URL of a page in characters.
_LONGEST = 2_000


def is_legacy_page(path: str) -> bool:
    """Return whether a path is a project page without `/-/`."""
    if len(path) > _LONGEST or ".git/" in path or path.endswith(".git"):
        return False
    # The addresses of receivers are an interface and do not change.
    return "/alerts/notify" not in path and _LEGACY.fullmatch(path) is not None


#: Prefixes of values that are known only at run time.
_VARIABLES = ("$", "{", "<", "%", "#{", UNKNOWN)
#: Maximum number of parameters, which is more than requests have.
_MOST = 1_000


@dataclass
class Known:
    """The known parameters of a request."""

    #: Values by name. None for a value that is known only at run time.
    values: dict[str, str | None] = field(default_factory=dict)
    #: True if there may be other parameters.
    is_open: bool = False

    def add_query(self, text: str) -> None:
        """Add the parameters of a query string or a form."""
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST)
        except ValueError:
            self.is_open = True
            return
        for name, value in pairs:
            self.add(name, value)

    def add(self, name: str, value: str | None) -> None:
        """Add a parameter; `name[]` is an item of the list `name`."""
        if len(self.values) < _MOST:
            is_known = value is not None and not value.startswith(_VARIABLES)
            self.values[name.removesuffix("[]")] = value if is_known else None

    def add_object(self, given: Mapping[str, Any]) -> None:
        """Add the members of a JSON object."""
        for name, value in given.items():
            if value is not None:
                self.add(name, value if isinstance(value, str) else str(value))
        for name in nested_names(given):
            self.add(name, None)


@singledispatch
def holds(condition: Condition, known: Known) -> bool:
    """Return whether a condition is definitely met."""
    return not known.is_open and condition(_texts(known))


def _texts(known: Known) -> dict[str, str]:
    return {name: value for name, value in known.values.items() if value is not None}


@holds.register
def _(condition: Given, known: Known) -> bool:
    return not known.values.keys().isdisjoint(condition.names)


@holds.register
def _(condition: Missing, known: Known) -> bool:
    if known.is_open or known.values.get(condition.name, "") is None:
        return False
    return condition(_texts(known))


@holds.register
def _(condition: AboveOne, known: Known) -> bool:
    """Return whether the number is above 1; a number that changes at run time counts as above."""
    if condition.name not in known.values:
        return False
    return known.values[condition.name] is None or condition(_texts(known))


@holds.register(Longer)
@holds.register(Shorter)
def _(condition: Condition, known: Known) -> bool:
    return condition(_texts(known))


@holds.register
def _(condition: FilteredUnlikeSorted, known: Known) -> bool:
    order = known.values.get(condition.sort, "")
    is_filtered = not known.values.keys().isdisjoint(condition.filters)
    if order is None or (known.is_open and is_filtered != (order == condition.by)):
        # The missing filter or order may be among the unknown parameters.
        return False
    return is_filtered != (order == condition.by)


class Host(Enum):
    """Relation between the host of a URL and this service."""

    #: There is no host, it is a variable, or its name identifies this service.
    OWN = auto()
    #: The host may run any service.
    UNKNOWN = auto()
    #: The host runs another service whose paths only look similar.
    OTHER = auto()


_OTHER_HOSTS = re.compile(
    r"(?:^|\.)(?:github\.com|githubusercontent\.com|ghcr\.io|bitbucket\.org|codeberg\.org|"
    r"gitea\.com|sourceforge\.net|sr\.ht|docker\.com|docker\.io|quay\.io|npmjs\.com|npmjs\.org|"
    r"pypi\.org|pythonhosted\.org|rubygems\.org|hashicorp\.com|googleapis\.com|amazonaws\.com|"
    r"cloudfront\.net|maven\.org|debian\.org|kernel\.org|gnu\.org|apache\.org|slack\.com)$"
    r"|^(?:docs|about|forum|handbook)\.gitlab\.com$|mattermost"
)
_OWN_HOSTS = re.compile(r"gitlab|gatebell")
_KNOWN_HOST = re.compile(r"[\w.-]+")


def host_of(parts: SplitResult) -> Host:
    """Return the relation between the host of a URL and this service."""
    name = parts.netloc.rpartition("@")[2].partition(":")[0].lower()
    if not name or not _KNOWN_HOST.fullmatch(name):
        return Host.OWN
    if _OTHER_HOSTS.search(name):
        return Host.OTHER
    return Host.OWN if _OWN_HOSTS.search(name) else Host.UNKNOWN


METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_GRAPHQL = "/api/graphql"
#: Headers with token types that GraphQL no longer accepts.
_OTHER_TOKENS = frozenset({"deploy-token"})
_PROXY = re.compile(r"/dependency_proxy/containers/")
#: Pattern of a variable with the address of the service before a path.
_LEADING_VARIABLE = re.compile(r"^(?:\$\{?\w+\}?|\{\{ ?\w+ ?\}\}|<\w+>)(?=/)")
_UNKNOWN_URL = SplitResult("", "", "", "", "")


@dataclass(frozen=True, kw_only=True)
class Request:
    """An HTTP request, as far as it is known."""

    method: str
    #: Path with query, with or without scheme and host.
    url: str
    line: int
    body: str = ""
    #: Form fields that are known individually.
    form: Mapping[str, str] = field(default_factory=dict)
    #: True if the body is known. False if only the request line is known.
    has_body: bool = True
    headers: frozenset[str] = frozenset()
    #: True if the host belongs to the service.
    is_own_host: bool = True

    @property
    def parts(self) -> SplitResult:
        """Return the parts of the URL, which are empty if it is malformed."""
        try:
            return urlsplit(resolved(self.url))
        except ValueError:
            return _UNKNOWN_URL


def judge(request: Request) -> Iterator[Found]:
    """Yield the changes that affect a request."""
    parts = request.parts
    path = parts.path
    if host_of(parts) is Host.OTHER:
        return
    of_api = api_path(path)
    if of_api is not None:
        yield from _of_api(request, of_api, parts.query)
    elif _GRAPHQL in path:
        yield from _of_graphql(request)
    else:
        yield from _of_pages(request, _LEADING_VARIABLE.sub("", path), host_of(parts))


def _of_api(request: Request, path: str, query: str) -> Iterator[Found]:
    concerns = concerns_of(path)
    if not concerns:
        return
    known = known_parameters(request, query)
    for concern in concerns:
        if reason := reason_of(concern, request.method, known):
            yield Found(concern.change, request.line, reason.text, reason.is_certain)


def known_parameters(request: Request, query: str) -> Known:
    """Return the known parameters of query and body."""
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
    """Add the parameters of a body, which is JSON or a form."""
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
    """The reason why a request is affected."""

    text: str
    #: True if everything that determines the result is known.
    is_certain: bool = True


def reason_of(concern: Concern, method: str, known: Known) -> Reason | None:
    """Return the reason why a request is affected, or None."""
    call = concern.call
    if call.methods and method not in call.methods:
        return None
    # An unknown method may be arbitrary text, and submitted text is not repeated.
    where = f"{method} {call.path}" if method in METHODS else call.path
    if call.when is not None:
        return _by_condition(concern, where, known)
    if call.attributes or call.fields:
        # It is not known whether a caller reads the field of a response.
        sent = [] if method in _READING else sorted(known.values.keys() & {*call.attributes})
        return Reason(f"{where} with {', '.join(sent)}") if sent else None
    # Rate limits are detected by the times of requests (`domain/releases/checker/access_logs.py`).
    return None if concern.change.kind is Kind.LIMIT_APPLIED else Reason(where)


def _by_condition(concern: Concern, where: str, known: Known) -> Reason | None:
    condition = concern.call.when
    if condition is None:
        return None
    if holds(condition, known):
        return Reason(f"{where}: {condition}")
    # The operation is removed, and its parameters may or may not have been sent.
    is_gone = concern.change.kind is Kind.OPERATION_GONE
    return Reason(where, is_certain=False) if is_gone and known.is_open else None


def _of_graphql(request: Request) -> Iterator[Found]:
    if not _OTHER_TOKENS.isdisjoint(request.headers):
        reason = f"{_GRAPHQL} with the header Deploy-Token"
        yield Found(BY_ID["graphql-token-types"], request.line, reason)


def _of_pages(request: Request, path: str, host: Host) -> Iterator[Found]:
    for change in _FIXED.get(path.rstrip("/"), ()):
        if request.method in _READING:
            yield Found(change, request.line, f"GET {path.rstrip('/')}")
    if _PROXY.search(path):
        reason = "An image pull through the dependency proxy"
        yield Found(BY_ID["dependency-proxy-scopes"], request.line, reason)
    is_read = request.method in _READING and request.is_own_host
    if is_read and is_legacy_page(unquote(path)):
        reason = "A URL of a project page without /-/"
        is_certain = host is Host.OWN
        yield Found(BY_ID["legacy-page-urls"], request.line, reason, is_certain)


def _fixed_paths() -> Mapping[str, tuple[Change, ...]]:
    """Return the changes by constant path outside of the API."""
    found: dict[str, tuple[Change, ...]] = {}
    for change in SCHEDULE:
        for call in change.calls:
            if not call.path.startswith("/api/") and not {":", "*"} & {*call.path}:
                found[call.path] = (*found.get(call.path, ()), change)
    return found


_FIXED = _fixed_paths()
