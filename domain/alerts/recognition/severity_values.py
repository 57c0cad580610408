"""Recognizes values that are severities."""

from domain.alerts.parsing.mapping_rules import is_rule_word, normalize_word
from domain.alerts.parsing.severity import (
    USUAL_SEVERITY_WORDS,
    find_usual_severity_word,
    parse_cvss_score,
)
from domain.alerts.recognition.key_splitting import parse_word_set
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.state_words import FAILURE_WORDS, RECOVERY_WORDS

#: Words for a missing value.
NO_VALUES = parse_word_set("none unknown")
#: Words for kinds of objects, which are not names.
KIND_WORDS = parse_word_set("alert incident issue problem event host service monitor check")
#: Words in keys for which `error` is a severity. Under other keys, `error` means that a run failed.
_GRADED_OWNERS = parse_word_set("alert alarm event check monitor trigger")
_MAX_SEVERITY_DIGITS = 2
#: Words in keys for levels that are severities.
_GRADED_THINGS = _GRADED_OWNERS | parse_word_set(
    "severity log risk threat incident issue problem error priority impact urgency current new"
)
#: Words in keys whose values are sentences, not severities.
_SENTENCE_WORDS = parse_word_set("message msg text description comment reason")


def is_severity(leaf: Leaf) -> bool:
    """Return whether a value can be a severity: a short word or a number of up to two digits."""
    text = normalize_word(leaf.value)
    is_long = text.isdecimal() and len(text) > _MAX_SEVERITY_DIGITS
    is_sentence = not _SENTENCE_WORDS.isdisjoint(leaf.own_words)
    is_other = leaf.is_time or is_sentence or is_long or _is_other_level(leaf)
    is_other |= not is_rule_word(text)
    is_word = (
        not isinstance(leaf.value, float)
        and any(each.isalnum() for each in text)
        and text not in NO_VALUES
    )
    return leaf.is_scalar and is_word and not is_other


def _is_other_level(leaf: Leaf) -> bool:
    """Return whether a level, such as the level of a backup, is not a severity."""
    owners = leaf.own_words[:-1]
    is_graded = not _GRADED_THINGS.isdisjoint(owners) or is_severity_word(leaf)
    return leaf.own_words[-1:] == ("level",) and bool(owners) and not is_graded


def is_severity_state(leaf: Leaf) -> bool:
    """Return whether a value is a state that is also a severity, such as `warning`."""
    own, word = set(leaf.own_words), normalize_word(leaf.text)
    is_state = bool(own & {"state", "status", "condition", "type"})
    is_graded = " " not in word and "type" not in own and is_severity_word(leaf)
    # The state `error` of a run is not a severity.
    is_failure = word in FAILURE_WORDS and not (word == "error" and own & _GRADED_OWNERS)
    is_other = leaf.describes_actor_or_past or is_failure or word in KIND_WORDS
    is_word = (word in USUAL_SEVERITY_WORDS or is_graded) and word not in RECOVERY_WORDS
    return is_state and is_word and not is_other and is_severity(leaf)


def is_cvss_score(leaf: Leaf) -> bool:
    """Return whether a value is a CVSS score. A key such as `cvss3Score` names the version."""
    return "cvss" in leaf.own_words and parse_cvss_score(leaf.value) is not None


def is_severity_word(leaf: Leaf) -> bool:
    """Return whether a value is a usual severity word.

    Numbers are excluded, since they have no common scale.
    """
    return find_usual_severity_word(leaf.text) is not None
