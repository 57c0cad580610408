"""Finds in the texts of programs the paths of requests."""

import re
from collections.abc import Sequence

from domain.releases.checker.pages import is_legacy_page
from domain.releases.checker.routes import (
    API,
    UNKNOWN,
    api_path,
    concerns_of,
    named_segments,
    resolved,
    segments_of,
)
from domain.releases.matching import Concern

#: What stands for a value: in templates of JavaScript, Python, Ruby, shells and printf.
_VALUE = re.compile(
    r"\$\{(?:[^{}]|\{[^{}]*+\})*+\}|#\{[^{}]*+\}|\{[^{}/\s]*+\}|%\(\w+\)[sd]|%[sdv]|<\w+>|\$[A-Za-z_]\w*+"
)
_COLON_VALUE = re.compile(r"(?<=/):\w+")
_SCHEME = re.compile(r"^https?://[^/]*+")
_PLAIN = re.compile(r"[\w./%:?&=\x00~@+,;\[\]$-]++")
#: Hosts of the product's own texts, whose pages are no projects.
_PAGE = re.compile(
    r"https?://(?!docs\.|about\.|forum\.|handbook\.)[\w.-]*gitlab[\w.:-]*(/[^\s?#\"'<>]*)"
)
_LONGEST = 2_000
#: Segments of a path that are no variables, with which it is one of the API wherever it stands.
_TELLING = 2


def legacy_page_in(text: str) -> bool:
    """Return whether a text is the URL of a page without `/-/`."""
    if len(text) > _LONGEST:
        return False
    found = _PAGE.fullmatch(_VALUE.sub("1", text))
    return found is not None and is_legacy_page(found[1])


def path_in(text: str, *, is_client: bool, is_called: bool) -> tuple[str, str] | None:
    """Return path and query of the request that a text is for, or None.

    Without /api/v4 it has to stand in a client of the service, and to be handed to what sends
    requests (`is_called`), or to be telling by itself.
    """
    if len(text) > _LONGEST or "\n" in text.strip():
        return None
    plain = _COLON_VALUE.sub(UNKNOWN, _VALUE.sub(UNKNOWN, resolved(text))).strip()
    if not _PLAIN.fullmatch(plain):
        return None
    path, _, query = plain.partition("?")
    of_api = api_path(path)
    if of_api is None and is_client:
        of_api = _relative(path, is_called=is_called)
    return None if of_api is None else (of_api.partition("#")[0], query)


def _relative(path: str, *, is_called: bool) -> str | None:
    segments = segments_of(_SCHEME.sub("", path))
    if segments and not segments[0].strip(UNKNOWN):
        del segments[0]
    if not segments:
        return None
    found = f"{API}/{'/'.join(segments)}"
    return found if is_called or _is_telling(concerns_of(found)) else None


def _is_telling(concerns: Sequence[Concern]) -> bool:
    return any(len(named_segments(each.call)) >= _TELLING for each in concerns)
