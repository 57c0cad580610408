"""Finds distinctive names of the schedule: attributes, fields and variables.

`operations_access_level` has a single meaning everywhere. In contrast, `external` and `version` are
found only with their calls (`domain/releases/checker/sources.py`).
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from domain.releases.changes import Call, Change, Interface, Names, Where
from domain.releases.checker.findings import Found, paced
from domain.releases.schedule import SCHEDULE

#: Minimum number of words in a distinctive name.
_WORDS = 3
#: Names with this number of words that are common nevertheless. They count only in clients of the
#: service.
_COMMON = frozenset({"sign_in_text", "add_on_purchase", "dependency_proxy"})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME = re.compile(r"(?<![\w-])[A-Za-z]\w{7,60}+")
#: Characters before and after a name in JSON, a query, a shell variable or a list.
_BEFORE, _BEHIND = frozenset("$?&{\"'[,/.%"), frozenset("=\"'&]:},")
#: Pattern of a program that is a client of this service or of one with the same API.
_CLIENT = re.compile(
    r"gitlab|gitbeaker|api/v4|private[-_]token|job[-_]token|CI_API_V4_URL|CI_SERVER_URL|"
    r"glpat-|gatebell|platform[-_]release|api/graphql|"
    r"\bgl\.(?:users|projects|groups|runners|settings|http_\w+)\b",
    re.IGNORECASE,
)
_TLS = re.compile(r"(?<![\w.])(?:PROTOCOL_)?TLS ?v1(?:[._][01])?(?:_method)?(?![\w.])")
_TLS_OPTION = re.compile(r"--tls-max[ =]1\.[01]\b")
#: Pattern before a minimum version, which also allows newer versions.
_LOWER_END = re.compile(r"min|lower|no_|disable|exclude|!|-", re.IGNORECASE)


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """Return a name in snake case, as used by the API."""
    return _HUMP.sub("_", name).replace("-", "_").lower()


def speaks_to_service(text: str) -> bool:
    """Return whether a program is a client of this service or of one with the same API."""
    return _CLIENT.search(text) is not None


def names_of(change: Change) -> Iterator[str]:
    """Yield the names of a change that may be distinctive."""
    for match in change.matches:
        if isinstance(match, Call):
            yield from (each.rpartition(".")[2] for each in match.fields)
            yield from match.attributes
        elif match.where not in {Where.PROTOCOL, Where.CI_KEYWORD, Where.SCOPE}:
            yield from match.names


def _distinct() -> Mapping[str, tuple[Change, ...]]:
    found: dict[str, dict[str, Change]] = {}
    for change in SCHEDULE:
        for name in map(snake, names_of(change)):
            if name.count("_") >= _WORDS - 1:
                found.setdefault(name, {})[change.id] = change
    return {name: tuple(changes.values()) for name, changes in found.items()}


#: Changes by distinctive name in snake case.
DISTINCT = _distinct()
_TLS_CHANGES = tuple(each for each in SCHEDULE if each.interface is Interface.TLS)
_KEY_SET_CHANGES = tuple(each for each in SCHEDULE if each.id == "jwks-alias")
_PROXY_CHANGES = tuple(
    change
    for change in SCHEDULE
    for match in change.matches
    if isinstance(match, Names) and match.where is Where.SCOPE
)


@lru_cache(maxsize=4096)
def changes_named(name: str, *, is_client: bool) -> tuple[Change, ...]:
    """Return the changes that a name indicates."""
    plain = snake(name)
    if plain in _COMMON and not is_client:
        return ()
    return DISTINCT.get(plain, ())


def names_in_text(
    text: str, line: int, *, is_client: bool = True, only: str | None = None
) -> Iterator[Found]:
    """Yield the names in a text other than prose, such as JSON, a query or a command."""
    if only is None:
        yield from _named(text, line, is_client=is_client)
        yield from _proxied(text, line)
        yield from _key_set(text, line)
    yield from _protocols(text, line)


def _named(text: str, line: int, *, is_client: bool) -> Iterator[Found]:
    for found in paced(_NAME.finditer(text)):
        changes = changes_named(found[0], is_client=is_client)
        if changes and _stands_alone(text, found):
            at = line + text.count("\n", 0, found.start())
            for change in changes:
                reason = f"The name {_written(found[0], change)}"
                yield Found(change, at, reason, is_certain=False)


def _written(name: str, change: Change) -> str:
    """Return the name as spelled in the schedule, because submitted text is not repeated."""
    known = {snake(each): each for each in names_of(change)}
    return known.get(snake(name), change.id)


def _stands_alone(text: str, found: re.Match[str]) -> bool:
    """Return whether a name is not part of a sentence."""
    before = text[found.start() - 1 : found.start()]
    behind = text[found.end() : found.end() + 8].lstrip(" \\")[:1]
    return (not before and not behind) or before in _BEFORE or behind in _BEHIND


def _proxied(text: str, line: int) -> Iterator[Found]:
    at = text.find("dependency_proxy/containers")
    if at >= 0:
        for change in _PROXY_CHANGES:
            reason = "An image pull through the dependency proxy"
            yield Found(change, line + text.count("\n", 0, at), reason)


def _key_set(text: str, line: int) -> Iterator[Found]:
    at = text.find("/-/jwks")
    if at >= 0:
        for change in _KEY_SET_CHANGES:
            yield Found(change, line + text.count("\n", 0, at), "The URL /-/jwks")


def _protocols(text: str, line: int) -> Iterator[Found]:
    for found in _protocol_words(text):
        for change in _TLS_CHANGES:
            at = line + text.count("\n", 0, found.start())
            yield Found(change, at, "A TLS version before 1.2")


def _protocol_words(text: str) -> Iterator[re.Match[str]]:
    yield from _TLS_OPTION.finditer(text)
    for found in paced(_TLS.finditer(text)):
        if not _LOWER_END.search(text[max(0, found.start() - 24) : found.start()]):
            yield found
