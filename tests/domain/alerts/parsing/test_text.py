import json
from typing import Any

import pytest
from hypothesis import given

from domain.alerts.parsing.json_body import LongNumber, parse_body_object
from domain.alerts.parsing.text_conversion import (
    convert_to_limited_lines,
    convert_to_short_text,
    convert_to_text,
    format_canonical_json,
    format_indented_json,
    replace_unstorable_characters,
    truncate_to_length,
)
from tests.domain.alerts.parsing.strategies import field_values, json_values, posted
from tests.support.wire.garbage import bounded


def test_a_text_that_fits_is_unchanged() -> None:
    assert truncate_to_length("a" * 200, 200) == "a" * 200


def test_a_longer_text_ends_in_an_ellipsis_within_the_length() -> None:
    assert truncate_to_length("a" * 201, 200) == "a" * 199 + "…"


@pytest.mark.parametrize("character", [chr(0), chr(0xD800), chr(0xDFFF)])
def test_a_character_that_no_column_holds_becomes_a_replacement(character: str) -> None:
    assert replace_unstorable_characters(f"disk{character}full") == "disk\ufffdfull"
    assert replace_unstorable_characters(f"диск{character}") == "диск\ufffd"


def test_other_characters_stay() -> None:
    text = "磁盘 🔥 \u202e\u200b\x01 <b>"
    assert replace_unstorable_characters(text) == text


@pytest.mark.spec("I3")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (17, "17"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ({"b": 1, "a": ["x"]}, '{"a":["x"],"b":1}'),
        (LongNumber("1e400"), "1e400"),
        ([LongNumber("1e400"), "ü"], '[1e400,"ü"]'),
        ({"z": 10**30, "a": {}, "b": []}, '{"a":{},"b":[],"z":1000000000000000000000000000000}'),
    ],
)
def test_a_value_of_another_type_becomes_its_json_text(value: object, text: str) -> None:
    assert convert_to_text(value) == text


@bounded(30)
@given(json_values)
def test_canonical_json_is_json_of_the_same_value(value: Any) -> None:
    read = parse_body_object(posted({"value": value}), nesting_limit=100)
    again = json.loads(format_canonical_json(read).decode("utf-8", "surrogatepass"))
    assert again == {"value": value}


@bounded(30)
@given(json_values)
def test_pretty_json_can_be_stored_and_is_json(value: Any) -> None:
    read = parse_body_object(posted({"value": value}), nesting_limit=100)
    pretty = format_indented_json(read)
    pretty.encode()
    json.loads(pretty)


def test_pretty_json_has_the_same_format_with_long_numbers() -> None:
    assert format_indented_json({"b": [1, {}], "a": []}) == (
        '{\n  "b": [\n    1,\n    {}\n  ],\n  "a": []\n}'
    )
    assert format_indented_json({"b": [LongNumber("1e400"), {}], "a": []}) == (
        '{\n  "b": [\n    1e400,\n    {}\n  ],\n  "a": []\n}'
    )


@pytest.mark.spec("I7")
@pytest.mark.parametrize(
    ("value", "hosts"),
    [
        ("web-1", ("web-1",)),
        (["web-1", "web-2"], ("web-1", "web-2")),
        (["web-1", ["web-2", [17]]], ("web-1", "web-2", "17")),
        (["", None, "  ", "web-1"], ("web-1",)),
        ("web-1\nweb-2\u2028", ("web-1 web-2",)),
        ({"name": "web-1"}, ('{"name":"web-1"}',)),
        (17, ("17",)),
        (None, ()),
        ([], ()),
    ],
)
def test_hosts_are_single_lines(value: object, hosts: tuple[str, ...]) -> None:
    assert convert_to_limited_lines(value, 255) == hosts


@pytest.mark.parametrize(
    ("value", "hosts"),
    [
        (["abc", "defg"], ("abc", "defg")),
        (["abc", "defgh"], ("abc", "def…")),
        (["abcdefg", "h"], ("abcdef…",)),
        (["abcdef", "hi"], ("abcdef", "…")),
        ("abcdefgh", ("abcdef…",)),
        (["abcdefg", ""], ("abcdefg",)),
    ],
)
def test_hosts_beyond_the_limit_are_cut_with_an_ellipsis(
    value: object, hosts: tuple[str, ...]
) -> None:
    assert convert_to_limited_lines(value, 7) == hosts


@bounded(30)
@given(field_values)
def test_texts_of_any_value_fit_and_can_be_stored(value: Any) -> None:
    text = convert_to_short_text(value, 10)
    assert text is None or (text.encode() and len(text) <= 10)
    hosts = convert_to_limited_lines(value, 10)
    assert all(hosts)
    assert len("".join(hosts)) <= 10
    assert len("\n".join(hosts).encode().splitlines()) == len(hosts)
