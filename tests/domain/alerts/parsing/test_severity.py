import pytest

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.severity import (
    GENERIC_SEVERITY_WORDS,
    METRICS_SEVERITY_WORDS,
    parse_severity,
)


@pytest.mark.spec("I6")
@pytest.mark.parametrize("word", ["critical", "high", "medium", "low", "info", "unknown"])
def test_the_generic_format_has_six_severities_in_any_case(word: str) -> None:
    for written in (word, word.upper(), word.title(), f" {word}\n"):
        assert parse_severity(written, GENERIC_SEVERITY_WORDS)[0] == word


@pytest.mark.spec("I6")
@pytest.mark.parametrize(
    "written", ["page", "s1", "warning", "sev1", 1, True, ["high"], {"a": "high"}, "criticaI"]
)
def test_any_other_generic_severity_is_critical(written: object) -> None:
    assert parse_severity(written, GENERIC_SEVERITY_WORDS)[0] is Severity.CRITICAL


@pytest.mark.spec("I14")
@pytest.mark.parametrize(
    ("severity", "words"),
    [
        ("critical", "critical s1 p1 emergency fatal"),
        ("high", "high s2 p2 major page"),
        ("medium", "medium s3 p3 error alert"),
        ("low", "low s4 p4 warn warning"),
        ("info", "info s5 p5 debug information notice"),
    ],
)
def test_the_metrics_format_maps_the_words_of_the_table(severity: str, words: str) -> None:
    for word in words.split():
        assert parse_severity(word, METRICS_SEVERITY_WORDS)[0] == severity
        assert parse_severity(word.upper(), METRICS_SEVERITY_WORDS)[0] == severity


@pytest.mark.spec("I14")
def test_the_table_of_the_metrics_format_has_no_further_words() -> None:
    assert len(METRICS_SEVERITY_WORDS) == 26
    assert parse_severity("unknown", METRICS_SEVERITY_WORDS)[0] is Severity.CRITICAL
    assert parse_severity("minor", METRICS_SEVERITY_WORDS)[0] is Severity.CRITICAL


@pytest.mark.spec("I6", "I14")
@pytest.mark.parametrize("missing", [None, "", "  ", []])
def test_a_missing_severity_is_critical(missing: object) -> None:
    assert parse_severity(missing, GENERIC_SEVERITY_WORDS) == (
        Severity.CRITICAL,
        "No severity: treated as critical",
        None,
    )


def test_the_reason_contains_the_original_word() -> None:
    assert parse_severity("page", METRICS_SEVERITY_WORDS)[1] == "reported as “page”"
    assert parse_severity("sev\x009", METRICS_SEVERITY_WORDS)[1] == (
        "Unknown severity “sev\ufffd9”: treated as critical"
    )


def test_severities_are_ranked_worst_first() -> None:
    assert [severity.rank for severity in Severity] == [0, 1, 2, 3, 4, 5]
    assert Severity.CRITICAL.rank == 0
    assert Severity.UNKNOWN.rank == 5
