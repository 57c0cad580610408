"""The tree of a sample's fields with their types."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.alerts.integrations.samples import MAX_TREE_NODES, SampleNode, build_sample_tree
from tests.domain.alerts.parsing.strategies import json_values, texts
from tests.support.wire.garbage import bounded

SAMPLE: dict[str, Any] = {
    "labels": {"app.kind": "mail", "on": True, "gone": None},
    "hosts": [{"name": "db-1"}, 17],
    "empty": {},
}


def lines(branches: tuple[SampleNode, ...], indent: str = "") -> Iterator[str]:
    for branch in branches:
        yield f"{indent}{branch.name}: {branch.json_type} {branch.gist}"
        yield from lines(branch.branches, f"{indent}  ")


@pytest.mark.spec("H8")
def test_the_tree_has_the_structure_and_types_of_the_sample() -> None:
    assert list(lines(build_sample_tree(SAMPLE))) == [
        "labels: object 3 items",
        '  app.kind: string "mail"',
        "  on: boolean true",
        "  gone: null null",
        "hosts: array 2 items",
        "  [0]: object 1 item",
        '    name: string "db-1"',
        "  [1]: number 17",
        "empty: object empty",
    ]


def test_the_tree_continues_in_json_texts_and_has_the_words_of_rules() -> None:
    inner = {"Message": '{"state": "OK"}', "long": "x" * 61, "list": "a, b", "empty": " "}
    message, *others = build_sample_tree(inner)
    (state,) = message.branches
    assert (state.form_value, state.label, state.word) == (
        '["Message", "state"]',
        "Message.state",
        "OK",
    )
    assert [each.word for each in others] == [None, None, None]


def test_the_tree_of_a_large_sample_has_only_the_first_fields() -> None:
    assert (
        len(list(lines(build_sample_tree({"many": list(range(9_000)), "last": 1}))))
        == MAX_TREE_NODES
    )


@pytest.mark.long
@bounded(30)
@example({"\ud800": None, "host": {"\udfff": 1}})
@given(st.dictionaries(texts, json_values, max_size=8))
def test_any_sample_has_a_tree_of_its_encodable_names(sample: dict[str, Any]) -> None:
    names = [name for name in sample if is_encodable(name)]
    assert [branch.name for branch in build_sample_tree(sample)] == names[:MAX_TREE_NODES]


def is_encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
