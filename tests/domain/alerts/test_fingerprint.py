from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.parsing import fingerprint
from domain.alerts.parsing.json_body import LongNumber, parse_body_object
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING
from tests.domain.alerts.parsing.strategies import json_values, posted, texts
from tests.support.wire.garbage import bounded

objects = st.dictionaries(texts, json_values, max_size=5)


def reversed_names(value: Any) -> Any:
    match value:
        case dict():
            return {name: reversed_names(value[name]) for name in reversed(value)}
        case list():
            return [reversed_names(item) for item in value]
    return value


def of_payload(payload: Mapping[str, Any]) -> bytes:
    return fingerprint.compute_fingerprint("payload", NO_FIELD_MAPPING.extract_stable_part(payload))


@pytest.mark.spec("I9")
@bounded(15)
@given(objects)
def test_the_order_of_names_does_not_matter(payload: dict[str, Any]) -> None:
    first = parse_body_object(posted(payload), nesting_limit=100)
    second = parse_body_object(posted(reversed_names(payload)), nesting_limit=100)
    assert fingerprint.compute_fingerprint("payload", first) == fingerprint.compute_fingerprint(
        "payload", second
    )
    assert fingerprint.compute_fingerprint("labels", first) == fingerprint.compute_fingerprint(
        "labels", second
    )


@pytest.mark.long
@pytest.mark.spec("I9")
@bounded(15)
@given(objects, objects)
def test_only_equal_payloads_have_equal_fingerprints(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first = parse_body_object(posted(one), nesting_limit=100)
    second = parse_body_object(posted(other), nesting_limit=100)
    # This compares representations, since 1, 1.0 and True are equal in Python but not in JSON.
    is_alike = repr(sorted(first.items())) == repr(sorted(second.items()))
    if not is_alike and first != second:
        assert fingerprint.compute_fingerprint("payload", first) != fingerprint.compute_fingerprint(
            "payload", second
        )


@pytest.mark.spec("I9")
@bounded(15)
@given(objects, st.sampled_from(["start_time", "end_time", "hosts"]), json_values)
def test_times_and_hosts_are_no_part_of_a_payload_fingerprint(
    payload: dict[str, Any], name: str, value: Any
) -> None:
    without = parse_body_object(posted(payload), nesting_limit=100)
    varied = parse_body_object(posted({**payload, name: value}), nesting_limit=100)
    assert of_payload(without) == of_payload(varied)


@pytest.mark.spec("I9")
def test_all_other_fields_are_part_of_a_payload_fingerprint() -> None:
    base = {"title": "Disk full", "service": "db"}
    for changed in ({"title": "Disk  full"}, {"severity": "low"}, {"extra": {"start_time": 1}}):
        assert of_payload({**base, **changed}) != of_payload(base)


@pytest.mark.spec("I7")
def test_a_number_has_the_fingerprint_of_its_text() -> None:
    assert fingerprint.compute_sender_fingerprint(17) == fingerprint.compute_sender_fingerprint(
        "17"
    )
    assert fingerprint.compute_sender_fingerprint(
        [17, "a"]
    ) == fingerprint.compute_sender_fingerprint(["17", "a"])
    assert fingerprint.compute_sender_fingerprint(
        LongNumber("1e400")
    ) == fingerprint.compute_sender_fingerprint("1e400")
    assert fingerprint.compute_sender_fingerprint(1.5) != fingerprint.compute_sender_fingerprint(1)


@pytest.mark.spec("I7")
def test_the_order_and_the_items_of_an_array_matter() -> None:
    different = [["a", "b"], ["b", "a"], ["ab"], "ab", ["a", "", "b"], '["a","b"]']
    assert len({fingerprint.compute_sender_fingerprint(value) for value in different}) == len(
        different
    )


def test_identifiers_that_differ_beyond_64_bits_are_different() -> None:
    one = parse_body_object(b'{"fingerprint":123456789012345678901234567890}', nesting_limit=100)
    other = parse_body_object(b'{"fingerprint":123456789012345678901234567891}', nesting_limit=100)
    assert fingerprint.compute_sender_fingerprint(
        one["fingerprint"]
    ) != fingerprint.compute_sender_fingerprint(other["fingerprint"])


def test_the_kind_of_the_source_is_part_of_the_fingerprint() -> None:
    thing = {"title": "Disk full"}
    assert (
        len(
            {
                fingerprint.compute_fingerprint("payload", thing),
                fingerprint.compute_fingerprint("labels", thing),
            }
        )
        == 2
    )
    assert fingerprint.compute_fingerprint(
        "title", "Disk full"
    ) != fingerprint.compute_sender_fingerprint("Disk full")


def test_a_fingerprint_has_32_bytes_and_never_changes() -> None:
    # Stored fingerprints depend on it: a change here would open every open alert a second time.
    assert fingerprint.compute_sender_fingerprint("disk-1").hex() == (
        "781b45d537ec76a33f8ee941c31c3cae9301cd2b4fbfcc09a57c7c2d947ae6f9"
    )
    assert of_payload({"title": "Disk full", "n": [1, 2.5], "hosts": "a"}).hex() == (
        "8c372e1ed9dc019ed9a12129044a66efd7af12ec7f8552ffabe10253482a765c"
    )


@pytest.mark.parametrize("value", ["a", 0, 1.5, ["a"], [0], [["a"]], LongNumber("1e400")])
def test_strings_numbers_and_arrays_can_be_fingerprints(value: object) -> None:
    assert fingerprint.is_usable_fingerprint(value)


@pytest.mark.parametrize("value", [None, "", " ", [], [None, ""], {}, {"a": 1}, True, False])
def test_other_values_and_blank_ones_cannot(value: object) -> None:
    assert not fingerprint.is_usable_fingerprint(value)
