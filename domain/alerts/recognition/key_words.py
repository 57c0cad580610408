"""Splits the keys of payloads into words, whatever their notation."""

import re
from collections.abc import Mapping
from functools import lru_cache

#: A word in upper case before a capitalized word, a word, a word in upper case, or digits.
_WORD = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_][^\W\d_A-Z]*|\d+")
#: Keys that are written as one word but consist of two.
_COMPOUNDS: Mapping[str, tuple[str, str]] = {
    f"{first}{second}": (first, second)
    for first, seconds in {
        "alert": "name id key type state status title level url text message body",
        "host": "name id ip state address output",
        "notification": "type",
        "service": "name desc state output",
        "monitor": "name id url type",
        "check": "name id",
        "rule": "name id url",
        "event": "id name type time",
        "incident": "id key url state",
        "problem": "id title url state",
        "starts": "at",
        "ends": "at",
        "fired": "at",
        "created": "at",
        "closed": "at",
        "resolved": "at",
        "time": "stamp",
        "run": "book",
        "new": "state",
        "old": "state",
    }.items()
    for second in seconds.split()
}
#: Ends of words that are not plurals, and the length of the shortest plural.
_SINGULAR_ENDS = ("ss", "us", "is")
_MIN_PLURAL_LENGTH = 4


def parse_word_set(text: str) -> frozenset[str]:
    """Return the words of a text that are separated by spaces."""
    return frozenset(text.split())


@lru_cache(maxsize=4096)
def split_words(key: str) -> tuple[str, ...]:
    """Return the words of a key in lower case and in the singular.

    Words end at separators, at a change of case and at digits: `alertConditionNames` consists of
    alert, condition and name.
    """
    words = (_make_singular(found.casefold()) for found in _WORD.findall(key))
    return tuple(part for word in words for part in _COMPOUNDS.get(word, (word,)))


def _make_singular(word: str) -> str:
    if len(word) > _MIN_PLURAL_LENGTH and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) >= _MIN_PLURAL_LENGTH and word.endswith("s") and not word.endswith(_SINGULAR_ENDS):
        return word[:-1]
    return word
