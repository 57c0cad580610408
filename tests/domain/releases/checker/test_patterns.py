"""Regular expressions match the same on every supported Python.

Before 3.11.5, Python matches possessive groups wrongly (github.com/python/cpython/issues/106052).
"""

import importlib
import re
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.registry.repositories import is_repository_name

_MODULES = (
    *("distinctive_names", "json_documents", "requests"),
    *("shell_commands", "source_code", "tokens"),
)
_POSSESSIVE = re.compile(r"\)([*+])\+")


def _patterns() -> Iterator[re.Pattern[str]]:
    for name in _MODULES:
        for value in vars(importlib.import_module(f"domain.releases.checker.{name}")).values():
            for each in value.values() if isinstance(value, dict) else [value]:
                if isinstance(each, re.Pattern) and _POSSESSIVE.search(each.pattern):
                    yield each


@given(data=st.data())
def test_a_possessive_group_matches_like_a_greedy_one(data: st.DataObject) -> None:
    pattern = data.draw(st.sampled_from(list(_patterns())))
    greedy = re.compile(_POSSESSIVE.sub(r")\1", pattern.pattern), pattern.flags)
    some = st.one_of(st.text("\"'`\\\n\r{}$x ", max_size=12), st.from_regex(greedy))
    text = "".join(data.draw(st.lists(some, max_size=3)))
    assume(len(text) < 500)
    assert _found(pattern, text) == _found(greedy, text)


def _found(pattern: re.Pattern[str], text: str) -> list[tuple[tuple[int, int], dict[str, str]]]:
    return [(each.span(), each.groupdict()) for each in pattern.finditer(text)]


@pytest.mark.parametrize("name", ["a__b", "a--b/c__d", "a.b_c-d/e", "a---b", "a/b__c/d"])
def test_names_of_repositories_with_separators_are_accepted(name: str) -> None:
    assert is_repository_name(name)


@pytest.mark.parametrize("name", ["a___b", "a..b", "a._b", "a_", "_a", "a-/b", "a//b", "A", "a/"])
def test_names_of_repositories_with_stray_separators_are_rejected(name: str) -> None:
    assert not is_repository_name(name)
