"""Finds distinctive names from the schedule: attributes, fields and variables.

A name such as `operations_access_level` has the same meaning everywhere. In contrast, the names
`external` and `version` are found only with their calls (`domain/releases/checker/source_code.py`).
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from domain.releases.changes import ApiNameKind, CallPattern, Change, Interface, NamePattern
from domain.releases.checker.findings import DetectedChange, iterate_within_limit
from domain.releases.schedule import SCHEDULE

#: Minimum number of words in a distinctive name.
_MIN_WORDS = 3
#: Names that are common although they have enough words. They count only in clients of the service.
_COMMON_NAMES = frozenset({"sign_in_text", "add_on_purchase", "dependency_proxy"})
_HUMP_PATTERN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME_PATTERN = re.compile(r"(?<![\w-])[A-Za-z]\w{7,60}+")
#: Characters before and after a name in JSON, a query, a shell variable or a list.
_PRECEDING_CHARACTERS, _FOLLOWING_CHARACTERS = frozenset("$?&{\"'[,/.%"), frozenset("=\"'&]:},")
#: Pattern that identifies a program as a client of this service, or of a service with the same API.
_CLIENT_PATTERN = re.compile(
    r"gitlab|gitbeaker|api/v4|private[-_]token|job[-_]token|CI_API_V4_URL|CI_SERVER_URL|"
    r"glpat-|gatebell|platform[-_]release|api/graphql|"
    r"\bgl\.(?:users|projects|groups|runners|settings|http_\w+)\b",
    re.IGNORECASE,
)
_TLS_PATTERN = re.compile(r"(?<![\w.])(?:PROTOCOL_)?TLS ?v1(?:[._][01])?(?:_method)?(?![\w.])")
_TLS_OPTION_PATTERN = re.compile(r"--tls-max[ =]1\.[01]\b")
#: Pattern for the text before a minimum version. A minimum also allows newer versions.
_MINIMUM_PATTERN = re.compile(r"min|lower|no_|disable|exclude|!|-", re.IGNORECASE)


@lru_cache(maxsize=4096)
def to_snake_case(name: str) -> str:
    """Return a name in snake case, as in the API."""
    return _HUMP_PATTERN.sub("_", name).replace("-", "_").lower()


def is_service_client(text: str) -> bool:
    """Return whether a program is a client of this service, or of a service with the same API."""
    return _CLIENT_PATTERN.search(text) is not None


def list_change_names(change: Change) -> Iterator[str]:
    """Yield the names that a change affects, as candidates for distinctive names."""
    for match in change.matches:
        if isinstance(match, CallPattern):
            yield from (each.rpartition(".")[2] for each in match.fields)
            yield from match.attributes
        elif match.where not in {ApiNameKind.PROTOCOL, ApiNameKind.CI_KEYWORD, ApiNameKind.SCOPE}:
            yield from match.names


def _find_distinctive_names() -> Mapping[str, tuple[Change, ...]]:
    found: dict[str, dict[str, Change]] = {}
    for change in SCHEDULE:
        for name in map(to_snake_case, list_change_names(change)):
            if name.count("_") >= _MIN_WORDS - 1:
                found.setdefault(name, {})[change.id] = change
    return {name: tuple(changes.values()) for name, changes in found.items()}


#: Changes by distinctive name in snake case.
DISTINCTIVE_NAMES = _find_distinctive_names()
_TLS_CHANGES = tuple(each for each in SCHEDULE if each.interface is Interface.TLS)
_KEY_SET_CHANGES = tuple(each for each in SCHEDULE if each.id == "jwks-alias")
_PROXY_CHANGES = tuple(
    change
    for change in SCHEDULE
    for match in change.matches
    if isinstance(match, NamePattern) and match.where is ApiNameKind.SCOPE
)


@lru_cache(maxsize=4096)
def find_changes_by_name(name: str, *, is_client: bool) -> tuple[Change, ...]:
    """Return the changes that affect a distinctive name."""
    plain = to_snake_case(name)
    if plain in _COMMON_NAMES and not is_client:
        return ()
    return DISTINCTIVE_NAMES.get(plain, ())


def find_names_in_text(
    text: str, line: int, *, is_client: bool = True, only: str | None = None
) -> Iterator[DetectedChange]:
    """Yield the changes that affect the names in text such as JSON, a query or a command."""
    if only is None:
        yield from _find_distinctive_names_in_text(text, line, is_client=is_client)
        yield from _find_proxy_pulls(text, line)
        yield from _find_key_set_urls(text, line)
    yield from _find_old_tls_versions(text, line)


def _find_distinctive_names_in_text(
    text: str, line: int, *, is_client: bool
) -> Iterator[DetectedChange]:
    for found in iterate_within_limit(_NAME_PATTERN.finditer(text)):
        changes = find_changes_by_name(found[0], is_client=is_client)
        if changes and _is_standalone_word(text, found):
            at = line + text.count("\n", 0, found.start())
            for change in changes:
                reason = f"The name {_get_schedule_spelling(found[0], change)}"
                yield DetectedChange(change, at, reason, is_certain=False)


def _get_schedule_spelling(name: str, change: Change) -> str:
    """Return a name as spelled in the schedule, since findings do not repeat submitted text."""
    known = {to_snake_case(each): each for each in list_change_names(change)}
    return known.get(to_snake_case(name), change.id)


def _is_standalone_word(text: str, match: re.Match[str]) -> bool:
    """Return whether a name is not part of a sentence."""
    before = text[match.start() - 1 : match.start()]
    behind = text[match.end() : match.end() + 8].lstrip(" \\")[:1]
    return (
        (not before and not behind)
        or before in _PRECEDING_CHARACTERS
        or behind in _FOLLOWING_CHARACTERS
    )


def _find_proxy_pulls(text: str, line: int) -> Iterator[DetectedChange]:
    at = text.find("dependency_proxy/containers")
    if at >= 0:
        for change in _PROXY_CHANGES:
            reason = "An image pull through the dependency proxy"
            yield DetectedChange(change, line + text.count("\n", 0, at), reason)


def _find_key_set_urls(text: str, line: int) -> Iterator[DetectedChange]:
    at = text.find("/-/jwks")
    if at >= 0:
        for change in _KEY_SET_CHANGES:
            yield DetectedChange(change, line + text.count("\n", 0, at), "The URL /-/jwks")


def _find_old_tls_versions(text: str, line: int) -> Iterator[DetectedChange]:
    for found in _find_tls_settings(text):
        for change in _TLS_CHANGES:
            at = line + text.count("\n", 0, found.start())
            yield DetectedChange(change, at, "A TLS version before 1.2")


def _find_tls_settings(text: str) -> Iterator[re.Match[str]]:
    yield from _TLS_OPTION_PATTERN.finditer(text)
    for found in iterate_within_limit(_TLS_PATTERN.finditer(text)):
        if not _MINIMUM_PATTERN.search(text[max(0, found.start() - 24) : found.start()]):
            yield found
