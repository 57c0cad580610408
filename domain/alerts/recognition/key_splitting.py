"""Splits payload keys in any notation into words."""

import re
from collections.abc import Mapping
from functools import lru_cache


def parse_word_set(text: str) -> frozenset[str]:
    """Return the words in a space-separated string."""
    return frozenset(text.split())


#: Pattern for an uppercase word, a lowercase or capitalized word, or digits. An uppercase word ends
#: before a capitalized word.
_WORD = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_][^\W\d_A-Z]*|\d+")
#: First and second parts of compound keys that are written as one word.
_FIRST_WORDS = parse_word_set(
    "alarm alert app check cluster database db device dev event group host if incident item job "
    "monitor node notification object obj problem rule sensor server service site source target "
    "task test trigger user vm"
)
_SECOND_WORDS = parse_word_set(
    "address body code desc id ip key level link message name output severity state status text "
    "time title type url"
)
_TIMES = parse_word_set("starts ends fired created closed resolved")
_IS_STATES = parse_word_set("recovery recovered resolved active down up firing open closed ok")
_COMPOUNDS: Mapping[str, tuple[str, str]] = {
    **{f"{first}{second}": (first, second) for first in _FIRST_WORDS for second in _SECOND_WORDS},
    **{f"{first}at": (first, "at") for first in _TIMES},
    **{f"is{state}": ("is", state) for state in _IS_STATES},
    **{word: (word[:-2], "id") for word in ("moid", "oid")},
    "timestamp": ("time", "stamp"),
    "buildername": ("builder", "name"),
    "runbook": ("run", "book"),
    "newstate": ("new", "state"),
    "oldstate": ("old", "state"),
}
_ABBREVIATIONS: Mapping[str, str] = {
    "db": "database",
    "dev": "device",
    "ids": "id",
    "if": "interface",
    "srv": "server",
    "svc": "service",
    "obj": "object",
}
#: Endings of words that are not plurals, and the length of the shortest plural.
_SINGULAR_ENDS = ("ss", "us", "is")
_MIN_PLURAL_LENGTH = 4


@lru_cache(maxsize=4096)
def split_words(key: str) -> tuple[str, ...]:
    """Return the words of a key in lower case and in the singular.

    Words end at separators, at a change of case and at digits: `alertConditionNames` consists of
    alert, condition and name.
    """
    words = (_make_singular(found.casefold()) for found in _WORD.findall(key))
    parts = (part for word in words for part in _COMPOUNDS.get(word, (word,)))
    return tuple(_ABBREVIATIONS.get(part, part) for part in parts)


def _make_singular(word: str) -> str:
    if len(word) > _MIN_PLURAL_LENGTH and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) >= _MIN_PLURAL_LENGTH and word.endswith("s") and not word.endswith(_SINGULAR_ENDS):
        return word[:-1]
    return word
