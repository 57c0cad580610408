"""Matchers with the syntax of Alertmanager's documentation, and the labels that they match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.matching.matcher_parser import MAX_MATCHERS_TEXT_LENGTH, parse_matchers
from domain.alerts.matching.matcher_syntax import (
    Matcher,
    MatcherOperator,
    format_matchers,
    matches_all_labels,
)
from domain.core.errors import InvalidError
from tests.support.wire.garbage import bounded

WATCHDOG = (
    Matcher("alertname", MatcherOperator.EQUAL, "Watchdog"),
    Matcher("severity", MatcherOperator.LIKE, "warning|critical"),
)


@pytest.mark.parametrize(
    "text",
    [
        'alertname="Watchdog",severity=~"warning|critical"',
        '{alertname="Watchdog", severity=~"warning|critical"}',
        '{alertname="Watchdog", severity=~"warning|critical",}',
        'alertname="Watchdog", severity=~"warning|critical",',
        '{\n  alertname = "Watchdog",\n  severity =~ "warning|critical",\n}\n',
        "alertname=Watchdog, severity=~warning|critical",
        '{"alertname"="Watchdog", "severity"=~"warning|critical"}',
    ],
)
def test_braces_quotes_and_white_space_do_not_matter(text: str) -> None:
    assert parse_matchers(text) == WATCHDOG


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("foo=", "foo", ""),
        ('foo=""', "foo", ""),
        ("foo = bar baz ", "foo", "bar baz"),
        ('foo="bar,baz"', "foo", "bar,baz"),
        (r'foo="\"bar\" \\ \n"', "foo", '"bar" \\ \n'),
        (r'foo="\d"', "foo", r"\d"),
        (r"foo=\d", "foo", r"\d"),
        (r'"foo bar"="\u00fc\x41\101\t"', "foo bar", "üAA\t"),
        (r'"🙂"="\xf0\x9f\x99\x82"', "🙂", "🙂"),
        ("größe=klein", "größe", "klein"),
        ("a:b=c", "a:b", "c"),
        ("foo=a}b", "foo", "a}b"),
    ],
)
def test_values_are_read_as_alertmanager_reads_them(text: str, name: str, value: str) -> None:
    assert parse_matchers(text) == (Matcher(name, MatcherOperator.EQUAL, value),)


@pytest.mark.parametrize("text", ["", " ", "{}", " { } ", "\n"])
def test_there_may_be_no_matchers(text: str) -> None:
    assert parse_matchers(text) == ()
    assert matches_all_labels((), {"any": "thing"})


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("service", 8, "expected one of = != =~ !~, found the end of the text"),
        ('a="b" c="d"', 7, 'expected a comma, found "c"'),
        ('{{a="b"}}', 2, 'expected the name of a label, found "{"'),
        ('{"a b"="c"', 11, "expected a comma or a closing brace, found the end of the text"),
        ('"a b"="c"}', 10, 'expected a comma, found "}"'),
        ('{"a b"="c"} x', 13, 'expected the end of the text, found "x"'),
        ('{a="b",,c="d"}', 8, 'expected the name of a label, found ","'),
        ('a="b', 3, "this double quote is not closed"),
        ('"a b"=', 7, "expected a value, found the end of the text"),
        ('""="b"', 1, "the name of a label is empty"),
        (r'"a b"="\q"', 7, "this string contains an unknown escape sequence"),
        (r'"a b"="\xff"', 7, "this string is not UTF-8"),
        ('a=~"["', 4, "the value of a is not a regular expression in RE2 syntax"),
        ('a=~"(?=b)"', 4, "the value of a is not a regular expression in RE2 syntax"),
        ('a==b"', 3, 'expected a value, found "="'),
    ],
)
def test_an_error_names_the_position_and_the_expected_text(
    text: str, position: int, reason: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        parse_matchers(text, field="matcher")
    assert str(refused.value).startswith(f"Character {position}: {reason}")
    assert refused.value.field == "matcher"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a=b," * 51,
            "a=" + "b" * MAX_MATCHERS_TEXT_LENGTH,
            "a=\x00",
            "a=\ud800",
            r'"a b"="\x00"',
        ),
        'a=~"' + "(a{100}){100}" * 9 + '"',
    ],
)
def test_texts_that_are_too_long_or_cannot_be_stored_are_rejected(text: str) -> None:
    with pytest.raises(InvalidError):
        parse_matchers(text)


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ('service="web"', True),
        ('service="we"', False),
        ('service=~"we"', False),
        ('service=~"we|web"', True),
        ('service=~"w.*"', True),
        ('service!~"w.*"', False),
        ('service!="web"', False),
        ('missing=""', True),
        ('missing!=""', False),
        ('missing=~".+"', False),
        ('missing!~".+"', True),
        ('lines=~"a.b"', False),
        ('lines=~"(?s)a.b"', True),
        ('service="web", host="db-1"', True),
        ('service="web", host="db-2"', False),
    ],
)
def test_all_matchers_have_to_match_the_whole_value(text: str, is_match: bool) -> None:  # noqa: FBT001 - a column of the table
    labels = {"service": "web", "host": "db-1", "lines": "a\nb"}
    assert matches_all_labels(parse_matchers(text), labels) is is_match


def test_a_pathological_regular_expression_is_fast() -> None:
    assert not matches_all_labels(parse_matchers('a=~"(x*)*y"'), {"a": "x" * 100_000})


STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
MATCHERS = st.builds(
    Matcher,
    STORABLE.filter(bool),
    st.sampled_from([MatcherOperator.EQUAL, MatcherOperator.NOT_EQUAL]),
    STORABLE,
)


@bounded(40)
@given(st.lists(MATCHERS, max_size=5))
def test_the_canonical_form_reads_as_the_same_matchers(matchers: list[Matcher]) -> None:
    assert parse_matchers(format_matchers(matchers)) == tuple(matchers)
    assert parse_matchers("{" + format_matchers(matchers) + "}") == tuple(matchers)


@given(st.text('ab"\\,={}~!\n x[é\x00\ud800', max_size=30))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        found = parse_matchers(text)
    except InvalidError:
        found = ()
    assert parse_matchers(format_matchers(found)) == found
    assert matches_all_labels(found, {"a": "b"}) in {True, False}
