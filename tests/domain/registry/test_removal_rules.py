"""Tags that removal rules select."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.core.errors import InvalidError
from domain.registry.removal import RemovalRule, parse_age, parse_stored_rule
from domain.registry.repositories import TagView

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def tag(name: str, *, days: int = 0) -> TagView:
    pushed_at = NOW - timedelta(days=days)
    return TagView(name=name, path=f"a/b:{name}", digest="sha256:" + "0" * 64, pushed_at=pushed_at)


TAGS = (
    tag("latest", days=9),
    tag("v1", days=8),
    tag("v2", days=7),
    tag("dev-1", days=6),
    tag("dev-2", days=2),
    tag("dev-3", days=1),
)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RemovalRule(delete=".*"), {"v1", "v2", "dev-1", "dev-2", "dev-3"}),
        (RemovalRule(delete="dev"), set()),
        (RemovalRule(delete="dev-.*", keep="dev-2"), {"dev-1", "dev-3"}),
        (RemovalRule(delete=".*", keep="v.*", keep_newest=2), {"dev-1"}),
        (RemovalRule(delete=".*", older_than=timedelta(days=6)), {"v1", "v2", "dev-1"}),
        (RemovalRule(delete="(?i)DEV-\\d"), {"dev-1", "dev-2", "dev-3"}),
        (RemovalRule(delete=".*", keep_newest=100), set()),
        # The newest of the matching tags are kept, even if they are old.
        (
            RemovalRule(delete="v.*", keep_newest=1, older_than=timedelta(days=1)),
            {"v1"},
        ),
    ],
)
def test_rules_match_whole_names_and_keep_latest(rule: RemovalRule, expected: set[str]) -> None:
    for each in (rule, parse_stored_rule(rule.convert_to_json_value())):
        each.check_patterns()
        assert {found.name for found in each.select_tags_to_remove(TAGS, now=NOW)} == expected


def test_a_pathological_regular_expression_is_fast() -> None:
    names = [tag("a" * 128), tag("a" * 127 + "b")]
    rule = RemovalRule(delete="(a*)*(a|aa)+$|(a+)+b")
    assert {each.name for each in rule.select_tags_to_remove(names, now=NOW)} == {
        each.name for each in names
    }


@pytest.mark.parametrize("pattern", ["(", "a{1000}{1000}", "(?=a)", "\\1", "\ud800", "x" * 256])
def test_expressions_that_re2_rejects_are_rejected(pattern: str) -> None:
    with pytest.raises(InvalidError) as refused:
        RemovalRule(delete=pattern).check_patterns()
    assert refused.value.field == "name_regex_delete"


@pytest.mark.parametrize(
    ("text", "hours"),
    [("1h", 1), ("12 hours", 12), ("7d", 168), ("1 day", 24), ("2w", 336), ("1month", 720)],
)
def test_ages_are_parsed_in_any_spelling(text: str, hours: int) -> None:
    assert parse_age(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5h", "1h30m", "1000000000d", "1 year"])
def test_other_ages_are_rejected(text: str) -> None:
    with pytest.raises(InvalidError):
        parse_age(text)
