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
_PLURALS_IN_SS = ("ss", "us", "is")


@lru_cache(maxsize=4096)
def split_words(key: str) -> tuple[str, ...]:
    """Return the words of a key in lower case and in the singular.

    Words end at separators, at a change of case and at digits: `alertConditionNames` consists of
    alert, condition and name.
    """
    words: list[str] = []
    for found in _WORD.findall(key):
        word = found.casefold()
        for part in _COMPOUNDS.get(word, (word,)):
            words.append(_make_singular(part))
    return tuple(words)


def _make_singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):  # noqa: PLR2004
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(_PLURALS_IN_SS):
        return word[:-1]
    return word
