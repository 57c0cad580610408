"""Texts in a fingerprint are compared without the words and values that change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.parsing.changing_words import remove_changing_words
from domain.alerts.parsing.mapping import AlertField, FieldMapping, parse_mapping
from domain.alerts.parsing.mapping_rules import MAX_IGNORED_WORDS, MappingRules, ValueJoin
from domain.core.errors import InvalidError

_IGNORED = frozenset({"failed", "succeeded", "down", "up", "unreachable", "reachable", "ok"})


@pytest.mark.parametrize(
    ("problem", "recovery", "remaining"),
    [
        (
            "Backup failed for database orders",
            "Backup of database orders succeeded",
            "Backup database orders",
        ),
        (
            "[DOWN] shop.example is unreachable (3 min)",
            "[UP] shop.example is reachable again",
            "shop.example",
        ),
        ("❌ **DOWN** web-1", "✅ **UP** web-1!", "web-1"),
        ("db-1 failed after 3 s", "db-1 succeeded after 1h5m3s", "db-1"),
        ("load 12.1 on web-1", "load: 0.4 on web-1", "web-1"),
        ("Disk at 97.3 of web-1 down", "Disk at 12,5 of web-1 up", "Disk web-1"),
        ("web-1 (attempt 1/3) down since 10:30", "web-1 (attempt 3/3) up at 11:05", "web-1"),
        (
            "2026-11-30 10:00:00 UTC web-1 down",
            "Sun, 30 Nov 2026 10:05:00 +0000 web-1 up",
            "web-1",
        ),
        ("Incident #4711: web-1 down", "Incident #4712: web-1 up", "web-1"),
        ("web-1 failed with 3 errors", "web-1 succeeded after 2 attempts", "web-1"),
    ],
)
def test_the_same_words_remain_of_the_problem_and_the_recovery(
    problem: str, recovery: str, remaining: str
) -> None:
    assert remove_changing_words(problem, _IGNORED) == remaining
    assert remove_changing_words(recovery, _IGNORED) == remaining


@pytest.mark.parametrize(
    "name",
    [
        *("server1", "db-02", "/dev/sda1", "10.0.0.1", "port 8080", "disk 2", "ge-0/1", "/", "C++"),
        *(
            "Postgres 15.2",
            "fe80::1",
            "98-03-8E-3A-8D-53",
            "2.5G WAN1",
            "*.example.com",
            "slot 1/2",
            "interface 0/1",
        ),
        *(
            "shop.example:8080",
            "3fa85f64-5717-4562-b3fc-2c963f66afa6",
            "rack 10:22",
            "rack 5d",
            "load 10.0.0.1",
            "t3.2xlarge",
        ),
        *("up-1", "down.example", "db_1", "#3", "orders@prod", "backup-2026-11-30"),
    ],
)
def test_digits_and_signs_in_a_name_remain(name: str) -> None:
    assert remove_changing_words(f"[DOWN] {name} is unreachable (3 min)", _IGNORED) == name.strip(
        "()"
    )


def test_a_name_and_a_text_without_other_words_are_unchanged() -> None:
    for text in ("down", "97%", "Down again", " up ", "", "[DOWN] web-1 " * 400):
        assert remove_changing_words(text, _IGNORED) == text


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_removal_adds_nothing(first: str, second: str) -> None:
    text = f"{first} {second}"
    remaining = remove_changing_words(text, _IGNORED)
    assert 0 < len(remaining) <= len(text)
    assert all(word in text for word in remaining.split())


def test_only_texts_in_the_fingerprint_are_compared_without_ignored_words() -> None:
    rules = MappingRules(
        joins={"fingerprint": ValueJoin((("host",), ("lines",), ("number",)))},
        ignored_words=("down",),
    )
    mapping = FieldMapping(
        {AlertField.FINGERPRINT: (("text",),), AlertField.TITLE: (("text",),)}, rules
    )
    payload = {"text": "[Down] web-1", "host": "down", "lines": ["a b", "x down"], "number": 5}
    read = mapping.read_fields(payload)
    assert read["fingerprint"] == ["web-1", "down", ["b", "x"], 5]
    assert read["title"] == "[Down] web-1"
    own = FieldMapping(rules=MappingRules(ignored_words=("down",)))
    assert own.read_fields({"fingerprint": "web-1 down"})["fingerprint"] == "web-1"


def test_ignored_words_are_stored_in_lower_case_and_validated() -> None:
    stored = {"rules": {"ignored_words": ["Down", " down ", "UP"]}}
    mapping = parse_mapping(stored)
    assert mapping.rules.ignored_words == ("down", "up")
    assert parse_mapping(mapping.stored) == mapping
    many = [f"w{number}" for number in range(MAX_IGNORED_WORDS + 1)]
    for words in ("down", [""], ["two words"], ["a,b"], ["x" * 61], [5], many):
        with pytest.raises(InvalidError):
            parse_mapping({"rules": {"ignored_words": words}})


def test_two_positions_in_parentheses_are_two_objects() -> None:
    first, second = (f"Port ({each}) down" for each in ("0/1", "0/2"))
    assert remove_changing_words(first, _IGNORED) != remove_changing_words(second, _IGNORED)
