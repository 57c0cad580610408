import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.parsing.incoming_alert import UnreadableBodyError
from domain.alerts.parsing.json_body import LongNumber, parse_body_object
from tests.domain.alerts.parsing.strategies import json_values, posted
from tests.support.wire.garbage import bounded


def read(body: bytes) -> dict[str, Any]:
    return parse_body_object(body, nesting_limit=100)


@pytest.mark.spec("I1")
def test_an_object_is_parsed() -> None:
    assert read(b'{"title": "Disk full", "n": [1, 2.5, null, true]}') == {
        "title": "Disk full",
        "n": [1, 2.5, None, True],
    }


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "The body is empty; a JSON object is expected."),
        (b" \n", "The body is empty; a JSON object is expected."),
        (b"\xef\xbb\xbf", "The body is empty; a JSON object is expected."),
        (b"[]", "The body is an array; a JSON object is expected."),
        (b"null", "The body is null; a JSON object is expected."),
        (b'"text"', "The body is a string; a JSON object is expected."),
        (b"17", "The body is a number; a JSON object is expected."),
        (b"1e400", "The body is a number; a JSON object is expected."),
        (b"true", "The body is a boolean; a JSON object is expected."),
        (b'{"a":NaN}', "The body is not JSON: NaN is not a JSON number (RFC 8259 section 6)."),
        (
            b'{"a":-Infinity}',
            "The body is not JSON: -Infinity is not a JSON number (RFC 8259 section 6).",
        ),
        (b'{"a":"\xff"}', "The body is not UTF-8 text (RFC 8259 section 8.1)."),
        (b'{"a":"\xed\xa0\x80"}', "The body is not UTF-8 text (RFC 8259 section 8.1)."),
        ('{"a":1}'.encode("utf-16"), "The body is not UTF-8 text (RFC 8259 section 8.1)."),
        (
            '{"a":1}'.encode("utf-16-le"),
            "The body is not JSON in UTF-8: it contains NUL bytes.",
        ),
        (b'{"a":1} {}', "The body is not JSON: Extra data at line 1, column 9."),
        (b'{"a":1,\n"b"}', "The body is not JSON: Expecting ':' delimiter at line 2, column 4."),
    ],
)
def test_other_values_than_objects_are_rejected_with_a_message(body: bytes, sentence: str) -> None:
    with pytest.raises(UnreadableBodyError) as refusal:
        read(body)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"a"',
        b'{"a":}',
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":"\x00"}',
        b'{"a":"line\nbreak"}',
        b'{"a":"\\x"}',
        b'{"a":"\\u12"}',
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":.5}',
        b'{"a":1.}',
        b'{"a":0x10}',
        b'{"a":nan}',
        b'{"a":"b}',
        b"}{",
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        b'{"a":1}\x00',
        b"title=Disk+full",
    ],
)
def test_malformed_json_is_rejected(body: bytes) -> None:
    with pytest.raises(UnreadableBodyError):
        read(body)


def test_a_byte_order_mark_is_ignored() -> None:
    assert read(b"\xef\xbb\xbf" + b'{"a":1}') == {"a": 1}


def test_of_two_members_with_one_name_the_last_one_counts() -> None:
    assert read(b'{"a":1,"a":2}') == {"a": 2}
    assert read(b'{"a":1,"a":2,"b":1e400}')["a"] == 2


def test_escaped_nul_and_lone_surrogates_are_legal() -> None:
    assert read(rb'{"a":"\u0000","b":"\ud800","\udfff":1}') == {
        "a": "\x00",
        "b": "\ud800",
        "\udfff": 1,
    }


def test_a_number_too_large_for_a_float_is_kept_as_text() -> None:
    assert read(b'{"a":1e400,"b":[-1E+999]}') == {
        "a": LongNumber("1e400"),
        "b": [LongNumber("-1E+999")],
    }


@pytest.mark.parametrize("digits", [20, 40, 4301, 100_000])
def test_an_integer_of_any_length_is_kept_to_the_last_digit(digits: int) -> None:
    written = "7" * digits
    assert read(b'{"a":%s}' % written.encode()) == {"a": LongNumber(written)}


@pytest.mark.parametrize("number", [2**64 - 1, 2**63, -(2**63), 10**18, 0])
def test_an_integer_of_64_bits_is_an_integer(number: int) -> None:
    assert read(b'{"a":%d}' % number) == {"a": number}


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_an_integer_just_beyond_64_bits_is_not_rounded(number: int) -> None:
    assert read(b'{"a":%d}' % number) == {"a": LongNumber(str(number))}


def nested(levels: int, inside: bytes = b"") -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + inside + b"]" * (levels - 1) + b"}"


def test_more_than_one_hundred_levels_are_rejected() -> None:
    assert read(nested(100))
    with pytest.raises(UnreadableBodyError, match="nested deeper than 100 levels"):
        read(nested(101))


def test_objects_count_as_levels_too() -> None:
    body = b'{"a":' * 101 + b"1" + b"}" * 101
    with pytest.raises(UnreadableBodyError, match="nested deeper"):
        read(body)


@pytest.mark.parametrize(
    "body",
    [nested(100_000), b"[" * 100_000, b'{"a":' * 100_000, nested(100_000, b"1e400")],
)
def test_a_hundred_thousand_levels_are_rejected(body: bytes) -> None:
    with pytest.raises(UnreadableBodyError, match="nested deeper"):
        read(body)


def test_a_depth_beyond_the_limit_of_the_parser_is_rejected() -> None:
    with pytest.raises(UnreadableBodyError):
        parse_body_object(nested(100_000), nesting_limit=1_000_000)


@pytest.mark.parametrize("text", ["[" * 500, '"' + "[" * 500, '\\"' + "{" * 500, "\\" * 7 + '"[['])
def test_brackets_inside_strings_are_no_levels(text: str) -> None:
    body = json.dumps({"a": text, "b": [[]] * 200}).encode()
    assert read(body)["a"] == text


def test_a_string_that_ends_in_a_backslash_hides_no_brackets() -> None:
    with pytest.raises(UnreadableBodyError, match="nested deeper"):
        read(rb'{"a":"\\","b":' + b"[" * 100 + b"]" * 100 + b',"c":""}')
    assert read(rb'{"a":"\\","b":"' + b"[" * 500 + b'"}')


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert len(read(b'{"a":[' + b"{}," * 50_000 + b"{}]}")["a"]) == 50_001


def depth_of(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(depth_of, value.values()), default=0)
        case list():
            return 1 + max(map(depth_of, value), default=0)
    return 0


@pytest.mark.long
@bounded(30)
@given(value=st.dictionaries(st.text(), json_values), limit=st.integers(1, 6))
def test_a_body_is_rejected_exactly_if_it_is_deeper_than_the_limit(
    value: dict[str, Any], limit: int
) -> None:
    try:
        parse_body_object(posted(value), nesting_limit=limit)
    except UnreadableBodyError:
        assert depth_of(value) > limit
    else:
        assert depth_of(value) <= limit


def attempt(body: bytes) -> dict[str, Any] | str:
    try:
        return read(body)
    except UnreadableBodyError as refusal:
        return str(refusal)


@bounded(100)
@given(st.binary(max_size=60) | st.text('{}[]"\\,:01eE-. \n\u0000NaIu', max_size=30))
def test_any_bytes_are_parsed_or_rejected(body: bytes | str) -> None:
    received = body.encode() if isinstance(body, str) else body
    assert isinstance(attempt(received), dict | str)
