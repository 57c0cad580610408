"""Maps the severity words that senders use to severities."""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping_rules import (
    MAX_RULE_WORD_LENGTH,
    is_rule_word,
    normalize_word,
)
from domain.alerts.parsing.text_conversion import format_excerpt, is_blank

#: Severities, by the words that senders use.
SeverityWords = Mapping[str, Severity]
#: Severity word of an integration that stands for a missing severity.
MISSING_SEVERITY = "(none)"
NO_SEVERITY_WORDS: SeverityWords = MappingProxyType({})

GENERIC_SEVERITY_WORDS: SeverityWords = {severity.value: severity for severity in Severity}

_ACCEPTED_WORDS = {
    Severity.CRITICAL: ("critical", "s1", "p1", "emergency", "fatal"),
    Severity.HIGH: ("high", "s2", "p2", "major", "page"),
    Severity.MEDIUM: ("medium", "s3", "p3", "error", "alert"),
    Severity.LOW: ("low", "s4", "p4", "warn", "warning"),
    Severity.INFO: ("info", "s5", "p5", "debug", "information", "notice"),
}

METRICS_SEVERITY_WORDS: SeverityWords = {
    word: severity for severity, words in _ACCEPTED_WORDS.items() for word in words
}


#: Proposed severities for words of other tools that are not accepted automatically.
_PROPOSED_SEVERITIES: SeverityWords = {
    **METRICS_SEVERITY_WORDS,
    **dict.fromkeys(
        ("disaster", "down", "failure", "failed", "outage", "urgent", "immediate", "danger"),
        Severity.CRITICAL,
    ),
    **dict.fromkeys(("blocker", "crit", "emerg", "sev0", "sev1", "1"), Severity.CRITICAL),
    **dict.fromkeys(("severe", "serious", "important", "unreachable", "sev2", "2"), Severity.HIGH),
    **dict.fromkeys(
        ("average", "middle", "err", "moderate", "sev3", "3", "degraded"), Severity.MEDIUM
    ),
    **dict.fromkeys(("minor", "caution", "sev4", "4"), Severity.LOW),
    **dict.fromkeys(("informational", "trace", "ok", "okay", "success", "normal"), Severity.INFO),
    **dict.fromkeys(("none", "maintenance", "sev5", "5"), Severity.INFO),
    **dict.fromkeys(("not classified", "undefined"), Severity.UNKNOWN),
}


#: Proposed severities by word. Numbers are excluded, because their meaning depends on the tool.
USUAL_SEVERITY_WORDS: SeverityWords = {
    word: severity for word, severity in _PROPOSED_SEVERITIES.items() if not word.isdecimal()
}


#: Maximum number of parts in a sender's word that is searched for a usual severity word.
_MAX_SEVERITY_PARTS = 5


class ParsedSeverity(NamedTuple):
    """The severity that a sender's word stands for, with the reason and an optional warning."""

    severity: Severity
    #: Reason for the severity, for display.
    reason: str
    #: Warning about an unknown word, or None.
    warning: str | None = None


def parse_severity(
    value: object, words: SeverityWords, own: SeverityWords = NO_SEVERITY_WORDS
) -> ParsedSeverity:
    """Return the severity for a sender's word.

    `own` contains the integration's own words. Case and surrounding spaces are ignored. A missing
    or unknown word results in critical, unless `own` contains MISSING_SEVERITY.
    """
    if is_blank(value):
        if given := own.get(MISSING_SEVERITY):
            return ParsedSeverity(given, f"No severity: this integration uses {given}")
        return ParsedSeverity(Severity.CRITICAL, "No severity: treated as critical")
    word = normalize_word(value)
    if word in own:
        reason = f"reported as {format_excerpt(value)}, which this integration maps to {own[word]}"
        return ParsedSeverity(own[word], reason)
    severity = words.get(word) if isinstance(value, str) else None
    if severity is None:
        reason = f"Unknown severity {format_excerpt(value)}: treated as critical"
        return ParsedSeverity(Severity.CRITICAL, reason, f"{reason}.")
    return ParsedSeverity(severity, f"reported as {format_excerpt(value)}")


#: Lowest scores of the severities in CVSS (CVSS 3.1, section 5).
_CVSS_SCORES = (
    (9.0, Severity.CRITICAL),
    (7.0, Severity.HIGH),
    (4.0, Severity.MEDIUM),
    (0.1, Severity.LOW),
    (0.0, Severity.INFO),
)
_MAX_CVSS_SCORE = 10.0


def parse_cvss_score(value: object) -> ParsedSeverity | None:
    """Return the severity for a CVSS score from 0 to 10, or None for any other value."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        score = float(value)
    except ValueError:
        return None
    if not 0 <= score <= _MAX_CVSS_SCORE:
        return None
    severity = next(each for lowest, each in _CVSS_SCORES if score >= lowest)
    return ParsedSeverity(severity, f"CVSS score {score:g}")


_UNKNOWN_WORD = re.compile("Unknown severity “([^”]+)”: treated as critical")


def find_unknown_words(parse_warnings: Iterable[str]) -> tuple[str, ...]:
    """Return each distinct word that warnings report as an unknown severity."""
    found = (_UNKNOWN_WORD.search(warning) for warning in parse_warnings)
    words = dict.fromkeys(normalize_word(match[1]) for match in found if match)
    return tuple(word for word in words if word.isprintable() and len(word) < MAX_RULE_WORD_LENGTH)


#: Words of common severity scales.
_SCALE = (
    *("emergency", "fatal", "critical", "major", "high", "error", "medium", "moderate"),
    *("minor", "warning", "warn", "low", "notice", "informational", "information", "info"),
)
_PARTS = re.compile(r"[a-z]+|\d+")


def find_usual_severity_word(value: object) -> str | None:
    """Return the usual severity word that a sender's word contains, such as `high`.

    The sender's word can have a prefix or a suffix, as in `SEVERITY_HIGH`, `SEV-1` or
    `P1 - Critical`. Return None if it contains no usual word, or words for different severities.
    """
    found = _list_usual_words(normalize_word(value)) if isinstance(value, str) else ()
    severities = {USUAL_SEVERITY_WORDS[word] for word in found}
    return found[0] if len(severities) == 1 else None


def _list_usual_words(text: str) -> tuple[str, ...]:
    if text in USUAL_SEVERITY_WORDS:
        return (text,)
    parts = [part for part in _PARTS.findall(text) if part != "alert"]
    if len(parts) > _MAX_SEVERITY_PARTS or {"not", "no", "non"} & set(parts):
        return ()
    numbered = [f"{first}{second}" for first, second in pairwise(parts)]
    found = dict.fromkeys(part for part in [*numbered, *parts] if part in USUAL_SEVERITY_WORDS)
    return tuple(found)


def list_related_severity_words(value: object) -> dict[str, Severity]:
    """Return the severities of words that differ from a sender's word only in their severity.

    For example, the words for `SEVERITY_HIGH` include `severity_low`, and the words for `SEV-2`
    include `sev-1`. The result is empty for a usual severity word, and for a word that contains
    several usual words.
    """
    text = normalize_word(value) if isinstance(value, str) else ""
    found = _list_usual_words(text)
    if len(found) != 1 or found[0] == text:
        return {}
    first, *number = _PARTS.findall(found[0])
    pattern = rf"(?<![a-z]){first}(?![a-z])"
    if number:
        pattern = rf"(?<![a-z]){first}([^a-z\d]*){number[0]}(?!\d)"
    place = re.search(pattern, text)
    if place is None:
        return {}
    head, tail = text[: place.start()], text[place.end() :]
    words = [f"{first}{place[1]}{each}" for each in "12345"] if number else _SCALE
    family = {f"{head}{word}{tail}": propose_severity(word) for word in words}
    return {word: each for word, each in family.items() if is_rule_word(word)}


def propose_severity(word: str) -> Severity:
    """Return the most likely severity for a word that a sender uses, such as `warn`."""
    known = find_usual_severity_word(word) or normalize_word(word)
    return _PROPOSED_SEVERITIES.get(known, Severity.CRITICAL)
