"""Checks HTTP requests from traffic, lists or command lines.

The time to find the entries for a path does not depend on the size of the schedule. Legacy URLs of
web pages have no separate entries, and are recognized by their form.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache, singledispatch
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from domain.releases.call_matches import CallMatch
from domain.releases.changes import CallPattern, Change, ReleaseChangeKind
from domain.releases.checker.findings import DetectedChange
from domain.releases.conditions import (
    Condition,
    FilterSortMismatch,
    NumberAboveOne,
    ParameterGiven,
    ParameterMissing,
    TextTooLong,
    TextTooShort,
    list_nested_names,
)
from domain.releases.schedule import CHANGES_BY_ID, SCHEDULE

API_PATH = "/api/v4"
#: Placeholder for a part of a path that is known only at run time.
UNKNOWN_PART = "\x00"
_API_VARIABLE_PATTERN = re.compile(
    r"\$(?:env:)?\{?CI_API_V4_URL\}?|\{\{ ?(?:api_url|gitlab_api(?:_url)?) ?\}\}"
)
_BASE_VARIABLE_PATTERN = re.compile(
    r"^\"?(?:\$\{?\w+\}?|\{\{ ?\w+ ?\}\})/(users|projects|groups|runners|jobs|user|application)\b"
)
#: Maximum number of segments into which a path is split.
_MAX_SEGMENTS = 40


@dataclass
class _PathNode:
    """A path segment in the schedule, with the segments that can follow it."""

    named: dict[str, "_PathNode"] = field(default_factory=dict)
    variable: "_PathNode | None" = None
    concerns: list[CallMatch] = field(default_factory=list)

    def iterate_matching_nodes(self, segment: str) -> Iterator["_PathNode"]:
        """Yield the child nodes that match a path segment."""
        if segment in self.named:
            yield self.named[segment]
        if self.variable is not None and segment:
            yield self.variable


@cache
def _build_path_tree() -> _PathNode:
    root = _PathNode()
    for change in SCHEDULE:
        for call in change.call_patterns:
            # Paths that end with a wildcard are web pages (`is_legacy_page`).
            if not call.path.endswith("*"):
                _find_or_add_leaf(root, split_path(call.path)).concerns.append(
                    CallMatch(change, call)
                )
    return root


def _find_or_add_leaf(node: _PathNode, segments: Sequence[str]) -> _PathNode:
    for segment in segments:
        if segment.startswith(":"):
            node.variable = node.variable or _PathNode()
            node = node.variable
        else:
            node = node.named.setdefault(segment, _PathNode())
    return node


def split_path(path: str) -> list[str]:
    """Return the segments of a path, ignoring leading and trailing slashes."""
    return path.strip("/").split("/", _MAX_SEGMENTS)


def find_path_matches(path: str) -> list[CallMatch]:
    """Return the schedule entries for a path and any method, more specific entries first."""
    nodes = [_build_path_tree()]
    for segment in split_path(path):
        nodes = [following for node in nodes for following in node.iterate_matching_nodes(segment)]
        if not nodes:
            return []
    return [concern for node in nodes for concern in node.concerns]


def resolve_base_url(url: str) -> str:
    """Return a URL with /api/v4 in place of variables that contain the API's base URL.

    Such variables are `$CI_API_V4_URL`, and any variable before a path that only the API has.
    """
    url = _API_VARIABLE_PATTERN.sub(API_PATH, url)
    if API_PATH in url:
        return url
    return _BASE_VARIABLE_PATTERN.sub(rf"{API_PATH}/\1", url)


def find_api_path(path: str) -> str | None:
    """Return the part of a path that starts with /api/v4, or None."""
    at = path.find(f"{API_PATH}/")
    return None if at < 0 else path[at:]


def list_constant_segments(call: CallPattern) -> list[str]:
    """Return the constant segments of an API path."""
    return [
        each
        for each in split_path(call.path.removeprefix(API_PATH))
        if each and each[0] not in ":*"
    ]


#: Segments of project pages that follow `/-/` in current URLs.
_PROJECT_PAGES = (
    "activity|alert_management|alerts|artifacts|badges|blame|blob|boards|branches|builds|"
    "ci|clusters|commit|commits|compare|container_registry|cycle_analytics|deploy_keys|"
    "deployments|edit|environments|error_tracking|feature_flags|find_file|forks|graphs|"
    "hooks|import|incidents|issues|jobs|labels|logs|merge_requests|metrics|milestones|mirror|"
    "network|packages|pages|pipeline_schedules|pipelines|project_members|protected_branches|"
    "protected_tags|raw|refs|releases|repository|runners|security|serverless|services|settings|"
    "snippets|starrers|tags|terraform|tracing|tree|triggers|usage_quotas|value_stream_analytics|"
    "variables|web_ide|wikis"
)
#: First segments of paths that do not belong to a project.
_NON_PROJECT_SEGMENTS = (
    r"-|\.well-known|admin|api|assets|dashboard|explore|files|groups|health_check|healthz|help|"
    "import|invites|jwt|login|metrics|oauth|profile|projects|public|readyz|registry|s|search|"
    "snippets|static|unsubscribes|uploads|user|users|v2"
)
_LEGACY_PATTERN = re.compile(
    rf"/(?!(?:{_NON_PROJECT_SEGMENTS})/)[\w.][\w.-]*+(?:/(?!-/|(?:{_PROJECT_PAGES})(?:/|$))[\w.][\w.-]*+){{1,20}}"
    rf"/(?:{_PROJECT_PAGES})(?:/.*)?",
    re.DOTALL,
)
#: Maximum length of a web page's URL in characters.
_MAX_PAGE_URL_LENGTH = 2_000


def is_legacy_page(path: str) -> bool:
    """Return whether a path is a project page without `/-/`."""
    if len(path) > _MAX_PAGE_URL_LENGTH or ".git/" in path or path.endswith(".git"):
        return False
    # The URLs of alert receivers are an interface that does not change.
    return "/alerts/notify" not in path and _LEGACY_PATTERN.fullmatch(path) is not None


#: Prefixes of values that are known only at run time.
_VARIABLE_PREFIXES = ("$", "{", "<", "%", "#{", UNKNOWN_PART)
#: Maximum number of parameters. Real requests have fewer.
_MAX_PARAMETERS = 1_000


@dataclass
class KnownParameters:
    """The parameters that a request is known to have, with their values."""

    #: Values by name. None for a value that is known only at run time.
    values: dict[str, str | None] = field(default_factory=dict)
    #: True if the request may have other parameters.
    is_open: bool = False

    def add_query(self, text: str) -> None:
        """Add the parameters of a query string or a form."""
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        except ValueError:
            self.is_open = True
            return
        for name, value in pairs:
            self.add_parameter(name, value)

    def add_parameter(self, name: str, value: str | None) -> None:
        """Add a parameter to the known parameters.

        `name[]` stands for an item of the `name` list.
        """
        if len(self.values) < _MAX_PARAMETERS:
            is_known = value is not None and not value.startswith(_VARIABLE_PREFIXES)
            self.values[name.removesuffix("[]")] = value if is_known else None

    def add_object(self, given_values: Mapping[str, Any]) -> None:
        """Add the members of a JSON object."""
        for name, value in given_values.items():
            if value is not None:
                self.add_parameter(name, value if isinstance(value, str) else str(value))
        for name in list_nested_names(given_values):
            self.add_parameter(name, None)


@singledispatch
def is_condition_met(condition: Condition, known: KnownParameters) -> bool:
    """Return whether a condition is definitely met."""
    return not known.is_open and condition(_get_known_values(known))


def _get_known_values(parameters: KnownParameters) -> dict[str, str]:
    return {name: value for name, value in parameters.values.items() if value is not None}


@is_condition_met.register
def _is_given(condition: ParameterGiven, known: KnownParameters) -> bool:
    return not known.values.keys().isdisjoint(condition.parameter_names)


@is_condition_met.register
def _is_missing(condition: ParameterMissing, known: KnownParameters) -> bool:
    if known.is_open or known.values.get(condition.name, "") is None:
        return False
    return condition(_get_known_values(known))


@is_condition_met.register
def _is_number_above_one(condition: NumberAboveOne, known: KnownParameters) -> bool:
    """Return whether a number is above 1, or is known only at run time."""
    if condition.name not in known.values:
        return False
    return known.values[condition.name] is None or condition(_get_known_values(known))


@is_condition_met.register(TextTooLong)
@is_condition_met.register(TextTooShort)
def _is_length_met(condition: Condition, known: KnownParameters) -> bool:
    return condition(_get_known_values(known))


@is_condition_met.register
def _is_sort_mismatch(condition: FilterSortMismatch, known: KnownParameters) -> bool:
    order = known.values.get(condition.sort, "")
    is_filtered = not known.values.keys().isdisjoint(condition.filters)
    if order is None or (known.is_open and is_filtered != (order == condition.by)):
        # The unknown parameters may include the missing filter or order.
        return False
    return is_filtered != (order == condition.by)


class HostRelation(Enum):
    """The relation between the host of a URL and this service."""

    #: Host that is missing, is a variable, or has a name that identifies this service.
    OWN = auto()
    #: Host that may run any service.
    UNKNOWN = auto()
    #: Host that runs another service with similar paths.
    OTHER = auto()


_OTHER_HOST_PATTERN = re.compile(
    r"(?:^|\.)(?:github\.com|githubusercontent\.com|ghcr\.io|bitbucket\.org|codeberg\.org|"
    r"gitea\.com|sourceforge\.net|sr\.ht|docker\.com|docker\.io|quay\.io|npmjs\.com|npmjs\.org|"
    r"pypi\.org|pythonhosted\.org|rubygems\.org|hashicorp\.com|googleapis\.com|amazonaws\.com|"
    r"cloudfront\.net|maven\.org|debian\.org|kernel\.org|gnu\.org|apache\.org|slack\.com)$"
    r"|^(?:docs|about|forum|handbook)\.gitlab\.com$|mattermost"
)
_OWN_HOST_PATTERN = re.compile(r"gitlab|gatebell")
_HOST_PATTERN = re.compile(r"[\w.-]+")


def classify_host(parts: SplitResult) -> HostRelation:
    """Return the relation between the host of a URL and this service."""
    name = parts.netloc.rpartition("@")[2].partition(":")[0].lower()
    if not name or not _HOST_PATTERN.fullmatch(name):
        return HostRelation.OWN
    if _OTHER_HOST_PATTERN.search(name):
        return HostRelation.OTHER
    return HostRelation.OWN if _OWN_HOST_PATTERN.search(name) else HostRelation.UNKNOWN


HTTP_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_GRAPHQL_PATH = "/api/graphql"
#: Headers with token types that GraphQL no longer accepts.
_REMOVED_TOKEN_HEADERS = frozenset({"deploy-token"})
_PROXY_PATTERN = re.compile(r"/dependency_proxy/containers/")
#: Pattern for a variable that contains the base URL of the service, before a path.
_LEADING_VARIABLE_PATTERN = re.compile(r"^(?:\$\{?\w+\}?|\{\{ ?\w+ ?\}\}|<\w+>)(?=/)")
_EMPTY_URL = SplitResult("", "", "", "", "")


@dataclass(frozen=True, kw_only=True)
class Request:
    """The known parts of an HTTP request."""

    method: str
    #: Path and query, with or without scheme and host.
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
    def url_parts(self) -> SplitResult:
        """The parts of the URL, which are empty if the URL is malformed."""
        try:
            return urlsplit(resolve_base_url(self.url))
        except ValueError:
            return _EMPTY_URL


def find_request_changes(request: Request) -> Iterator[DetectedChange]:
    """Yield the scheduled changes that affect a request."""
    parts = request.url_parts
    path = parts.path
    if classify_host(parts) is HostRelation.OTHER:
        return
    api_path = find_api_path(path)
    if api_path is not None:
        yield from _check_api_request(request, api_path, parts.query)
    elif _GRAPHQL_PATH in path:
        yield from _check_graphql_headers(request)
    else:
        yield from _check_page_request(
            request, _LEADING_VARIABLE_PATTERN.sub("", path), classify_host(parts)
        )


def _check_api_request(request: Request, path: str, query: str) -> Iterator[DetectedChange]:
    concerns = find_path_matches(path)
    if not concerns:
        return
    known = find_known_parameters(request, query)
    for concern in concerns:
        if reason := find_match_reason(concern, request.method, known):
            yield DetectedChange(concern.change, request.line, reason.text, reason.is_certain)


def find_known_parameters(request: Request, query: str) -> KnownParameters:
    """Return the known parameters in the query and the body of a request."""
    known = KnownParameters()
    known.add_query(query)
    for name, value in request.form.items():
        known.add_parameter(name, value)
    if request.body:
        add_body_parameters(known, request.body)
    is_complete = request.has_body or request.method in _READ_METHODS
    known.is_open = known.is_open or not is_complete
    return known


def add_body_parameters(parameters: KnownParameters, body: str) -> None:
    """Add the parameters of a body, which is JSON or a form."""
    if body.lstrip()[:1] in {"{", "["}:
        found = parse_json_or_none(body)
        if isinstance(found, dict):
            parameters.add_object(found)
        else:
            parameters.is_open = True
        return
    parameters.add_query(body)


def parse_json_or_none(text: str) -> Any:
    """Parse JSON, and return None if the text is not valid JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class MatchReason(NamedTuple):
    """The reason why a request is affected."""

    text: str
    #: True if all parameters that determine the result are known.
    is_certain: bool = True


def find_match_reason(
    call_match: CallMatch, method: str, parameters: KnownParameters
) -> MatchReason | None:
    """Return the reason why a request is affected, or None."""
    call = call_match.call
    if call.methods and method not in call.methods:
        return None
    # An unknown method may be any text, and findings must not repeat submitted text.
    where = f"{method} {call.path}" if method in HTTP_METHODS else call.path
    if call.when is not None:
        return _find_condition_reason(call_match, where, parameters)
    if call.attributes or call.fields:
        # It is unknown whether the caller reads the field in the response.
        sent = (
            [] if method in _READ_METHODS else sorted(parameters.values.keys() & {*call.attributes})
        )
        return MatchReason(f"{where} with {', '.join(sent)}") if sent else None
    # Rate limits are detected from request times (`domain/releases/checker/access_logs.py`).
    return None if call_match.change.kind is ReleaseChangeKind.LIMIT_APPLIED else MatchReason(where)


def _find_condition_reason(
    call_match: CallMatch, where: str, parameters: KnownParameters
) -> MatchReason | None:
    condition = call_match.call.when
    if condition is None:
        return None
    if is_condition_met(condition, parameters):
        return MatchReason(f"{where}: {_limit_to_given_parameters(condition, parameters)}")
    # The operation is removed, but it is unknown whether its parameters were sent.
    is_gone = call_match.change.kind is ReleaseChangeKind.OPERATION_GONE
    return MatchReason(where, is_certain=False) if is_gone and parameters.is_open else None


def _limit_to_given_parameters(condition: Condition, parameters: KnownParameters) -> Condition:
    """Return a condition that names only parameters of the request."""
    if not isinstance(condition, ParameterGiven):
        return condition
    return ParameterGiven(
        *(each for each in condition.parameter_names if each in parameters.values)
    )


def _check_graphql_headers(request: Request) -> Iterator[DetectedChange]:
    if not _REMOVED_TOKEN_HEADERS.isdisjoint(request.headers):
        reason = f"{_GRAPHQL_PATH} with the Deploy-Token header"
        yield DetectedChange(CHANGES_BY_ID["graphql-token-types"], request.line, reason)


def _check_page_request(
    request: Request, path: str, host: HostRelation
) -> Iterator[DetectedChange]:
    for change in _CHANGES_BY_FIXED_PATH.get(path.rstrip("/"), ()):
        if request.method in _READ_METHODS:
            yield DetectedChange(change, request.line, f"GET {path.rstrip('/')}")
    if _PROXY_PATTERN.search(path):
        reason = "An image pull through the dependency proxy"
        yield DetectedChange(CHANGES_BY_ID["dependency-proxy-scopes"], request.line, reason)
    is_read = request.method in _READ_METHODS and request.is_own_host
    if is_read and is_legacy_page(unquote(path)):
        reason = "A URL of a project page without /-/"
        is_certain = host is HostRelation.OWN
        yield DetectedChange(CHANGES_BY_ID["legacy-page-urls"], request.line, reason, is_certain)


def _index_fixed_paths() -> Mapping[str, tuple[Change, ...]]:
    """Return the changes by path, for paths that are outside the API and have no variables."""
    found: dict[str, tuple[Change, ...]] = {}
    for change in SCHEDULE:
        for call in change.call_patterns:
            if not call.path.startswith("/api/") and not {":", "*"} & {*call.path}:
                found[call.path] = (*found.get(call.path, ()), change)
    return found


_CHANGES_BY_FIXED_PATH = _index_fixed_paths()
