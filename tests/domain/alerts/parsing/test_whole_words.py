"""Rules that search a sentence for a word: only whole words that are not negated match."""

import pytest

from domain.alerts.parsing.mapping_rules import Operator, PayloadCondition
from domain.alerts.parsing.text_conversion import split_title
from domain.alerts.parsing.whole_words import contains_unnegated_word


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Backup finished with SUCCESS", "success"),
        ("Success: no errors found", "success"),
        ("ResolvedCritical", "resolved"),
        ("disk_resolved", "resolved"),
        ("[RESOLVED] Disk is full", "[resolved]"),
        ("Up (3/3)", "up ("),
        ("State changed from DOWN to OK", "ok"),
        ("The alert was resolved", "resolved"),
        ("No longer failing, recovered", "recovered"),
        ("Not resolved at 10:00. Resolved at 11:00", "resolved"),
    ],
)
def test_a_whole_word_is_found_in_any_case(text: str, word: str) -> None:
    assert contains_unnegated_word(text, word)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Backup was unsuccessful", "successful"),
        ("Backup was not successful", "successful"),
        ("Backup finished without success", "success"),
        ("Backup finished without any success", "success"),
        ("The problem has not yet been resolved", "resolved"),
        ("The problem hasn't been resolved", "resolved"),
        ("The problem isn\u2019t resolved", "resolved"),
        ("NOT_OK", "ok"),
        ("non-successful run", "successful"),
        ("Success: false", "success"),
        ("Recovery failed", "recovery"),
        ("Success rate is 10 %", "success"),
        ("State changed from OK to DOWN", "ok"),
        ("UnresolvedCritical", "resolved"),
        ("UnSuccessful", "successful"),
        ("The issue is yet to be resolved", "resolved"),
        ("Token expired", "ok"),
    ],
)
def test_a_part_of_a_word_and_a_negated_word_are_not_found(text: str, word: str) -> None:
    assert not contains_unnegated_word(text, word)


def test_one_of_several_values_and_words_is_enough() -> None:
    rule = PayloadCondition(("text",), Operator.CONTAINS_WORD, ("passed", "Success"))
    assert rule.matches({"text": ["unsuccessful", "a success"]})
    assert not rule.matches({"text": ["unsuccessful", "no success"]})
    assert not rule.matches({"other": "success"})
    assert rule.matches(rule.build_matching_payload({"text": "not passed"}))


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("Error in Pod\n```\nBack-off\n\n```", "Error in Pod", "```\nBack-off\n\n```"),
        ("\n---\n  Disk full  \n\n", "Disk full", None),
        ("```\nDisk full\n```", "Disk full", None),
        ("Disk full\r\non web-1", "Disk full", "on web-1"),
        ("***\n---", "***\n---", None),
        ("Disk full", "Disk full", None),
    ],
)
def test_the_first_line_with_letters_is_the_title(text: str, title: str, rest: str | None) -> None:
    assert split_title(text) == (title, rest)
