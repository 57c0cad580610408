"""Removes the words of a text that change between the messages about one problem.

The remaining words identify open alerts, so a change to these patterns separates open alerts from
their recoveries.
"""

import re
from collections.abc import Collection

#: Maximum length of a text whose words are removed, in characters.
_MAX_LENGTH = 4_000
#: Words that occur in only some sentences about the same problem and never name an object.
_FILLERS = frozenset(
    (
        *("a", "an", "the", "is", "are", "was", "were", "be", "been", "has", "have", "had", "took"),
        *("of", "for", "on", "in", "at", "by", "with", "since", "after", "within"),
        *("now", "again", "back", "still", "currently", "anymore"),
    )
)
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_NUMBER = r"[-+]?\d+(?:,\d{3})*(?:[.,]\d+)?"
_UNIT = (
    r"(?:%|percent|°[CF]|(?-i:[µmn]s)|sec(?:ond)?s?|min(?:ute)?s?|hrs?|hours?|days?|weeks?"
    r"|milliseconds?|[KMGT]i?B|bytes?|[KMG]bps|[KMG]bit/s|[kM]?Hz|rpm|req/s)"
)
_OCCURRENCE = (
    r"(?:attempt|retry|occurrence|event|incident|problem|alert|ticket|run|build)"
    r"(?: id| number)?"
)
#: Patterns of values that change. A number without a unit is often a part of a name, as in
#: `port 8080` or `disk 2`, so it is only removed after a word for a measurement or an occurrence.
_PATTERNS = (
    rf"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?(?:\d\d? {_MONTH}|{_MONTH} \d\d?),? \d{{4}}",
    rf"\d{{4}}([-/.])\d\d\1\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?{_ZONE}",
    rf"\d\d?:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M)?{_ZONE}",
    r"(?:at|since|from|until) \d\d?:\d\d|\d\d?:\d\d ?(?:AM|PM|UTC|GMT)",
    r"(?:\d+(?:ms|(?-i:[smhd]))){2,}",
    rf"(?:(?<=\()|(?:for|after|in|within|took|last|over|every) ){_NUMBER} ?(?-i:[smhd])",
    rf"{_NUMBER} ?{_UNIT}(?:/s)?",
    rf"(?:load|value|usage|count|average|avg)(?: (?:is|was|of|at))? ?[:=]? ?{_NUMBER}",
    r"(?:[=<>≥≤]|at|than|above|below|over|under|reached) ?-?\d+[.,]\d+",
    r"(?:with|after|has|had|for|found) \d+ (?:times?|attempts?|retries|errors?|failures?)",
    rf"{_OCCURRENCE}:? ?#?(?:\d+(?:/\d+| of \d+)?|[0-9a-f]{{8}}(?:-[0-9a-f]{{4,12}}){{4}})",
)
#: Pattern of a value that is not a part of a name such as `db-02`, `10.0.0.1` or `/dev/sda1`.
_VALUES = re.compile(
    rf"(?<![\w./:,#@+-])(?:{'|'.join(_PATTERNS)})(?![\w/@#-]|[.,:]\w)", re.IGNORECASE
)
#: Pattern of the punctuation and symbols around a word. A slash or a sign can be part of a name.
_EDGES = re.compile(r"^(?:[^\w/+#$@&~.*-]|\*(?!\.))+|[^\w/+#$@&~-]+$")


def remove_changing_words(text: str, ignored: Collection[str]) -> str:
    """Return a text without values that change, filler words, punctuation and ignored words.

    Ignored words are in lower case. A text without spaces is a name and is returned unchanged, like
    a very long text and a text that consists only of changing words.
    """
    if len(text) > _MAX_LENGTH or not any(map(str.isspace, text.strip())):
        return text
    words = (_EDGES.sub("", word) for word in _VALUES.sub(" ", text).split())
    kept = (
        word
        for word in words
        if (any(map(str.isalnum, word)) or "/" in word)
        and not (word in _FILLERS or word.casefold() in ignored)
    )
    return " ".join(kept) or text
