from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.parsing.json_body import parse_body_object
from domain.alerts.parsing.payload_fields import flatten_payload
from tests.domain.alerts.parsing.strategies import json_values, posted, texts
from tests.support.wire.garbage import bounded


@pytest.mark.spec("I3", "J5")
def test_every_leaf_is_shown_with_its_path() -> None:
    body: dict[str, Any] = {
        "title": "Disk full",
        "extra": {"mount": "/var", "inodes": [1, {"free": 0.5}], "empty": {}},
        "tags": [],
        "note": None,
        "ok": False,
    }
    assert flatten_payload(body) == (
        ("title", "Disk full"),
        ("extra.mount", "/var"),
        ("extra.inodes.0", "1"),
        ("extra.inodes.1.free", "0.5"),
        ("extra.empty", "{}"),
        ("tags", "[]"),
        ("note", "null"),
        ("ok", "false"),
    )


def test_an_empty_payload_has_no_lines() -> None:
    assert flatten_payload({}) == ()


def leaves(value: Any) -> int:
    match value:
        case dict():
            return sum(map(leaves, value.values())) or 1
        case list():
            return sum(map(leaves, value)) or 1
    return 1


@pytest.mark.long
@bounded(30)
@given(st.dictionaries(texts, json_values, min_size=1))
def test_all_fields_are_listed_and_displayable(body: dict[str, Any]) -> None:
    lines = flatten_payload(parse_body_object(posted(body), nesting_limit=100))
    assert len(lines) == leaves(body)
    for path, text in lines:
        (path + text).encode()
        assert "\x00" not in path + text
