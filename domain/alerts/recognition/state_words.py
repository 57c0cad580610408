"""Words that senders use for the state of an alert: problem words and recovery words.

The words are divided into groups. A recovery word is the opposite of the problem words in the same
group: `open` becomes `closed`, and `down` becomes `up`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from domain.alerts.recognition.key_splitting import parse_word_set, split_words

_SEVERITIES = "critical crit warning warn major minor emergency fatal"
#: Severities, which some tools also use as states.
SEVERITY_WORDS = frozenset(_SEVERITIES.split())
#: Problem words and recovery words of each group. The first recovery word is the most common.
_GROUPS: tuple[tuple[str, str], ...] = (
    (
        "firing fired fire triggered trigger activated",
        "resolved resolve cleared clear recovered ok reset",
    ),
    ("open opened opening reopened reopen", "closed close resolved fixed done solved"),
    ("disconnected lost", "connected reconnected restored"),
    ("alerting alert alarm alarming", "ok okay normal"),
    ("down offline unreachable unavailable dead", "up online reachable available alive"),
    (
        "failing failed fail failure error errored faulted crashed",
        "passing passed pass success succeeded successful ok finished completed",
    ),
    ("problem", "recovery recovered ok resolved"),
    ("active ongoing", "inactive ended done canceled cancelled resolved closed ok clear cleared"),
    ("unhealthy", "healthy"),
    ("red yellow orange", "green"),
    ("bad broken danger", "good fixed"),
    ("raised raise", "cleared clear lowered"),
    ("started start began begin", "ended end finished stopped completed"),
    (_SEVERITIES, "ok okay normal clear cleared"),
    ("abnormal anomaly anomalous", "normal"),
    ("degraded outage impaired worsened", "operational improved"),
    ("create created new", "close closed resolved resolve"),
    ("breached breach violated violation violating exceeded", "restored recovered"),
    ("investigating identified monitoring", "resolved completed"),
    ("missed late overdue", "recovered ok"),
)
#: Problem words whose recoveries are usually in the same group.
CLEAR_PROBLEMS = parse_word_set(
    "firing triggered alerting open opened down problem failing failed unhealthy unreachable"
)
#: Words for failed runs, such as builds, and words for runs that have not ended yet.
FAILURE_WORDS = parse_word_set("failing failed fail failure error errored faulted crashed")
UNFINISHED_WORDS = (
    *("pending", "waiting", "queued", "started", "running", "executing"),
    *("in progress", "in_progress"),
)
#: Words in severity scales that mean that there is no problem.
ALL_CLEAR_WORDS = ("ok", "okay", "clear", "cleared", "normal", "resolved", "recovered")
#: Maximum length of a text that is a state. Longer texts are sentences.
_MAX_STATE_LENGTH = 60
#: Pattern of text that can be a state. Any other text is a sentence.
_STATE_TEXT = re.compile(r"[\w.:/>()\- ]+")
#: Pattern of the word at the beginning of a text, and the separator after it, as in `Down (1/3)`.
_LEADING_WORD = re.compile(r"\s*([^\W\d_]+)(\s+[(\[/|:-]?)\S")
#: Maximum number of words in a text that is a state.
_MAX_STATE_WORDS = 4
#: Words that negate a state, or that precede the former state, as in `DOWN from OK`.
UNCLEAR_WORDS = parse_word_set("not no non never without from was")
#: Words that can also name a kind of thing, as in `ALARM_TYPE`. In the name of a class, and before
#: other words, they are not states.
_NOUNS = parse_word_set("alert alarm anomaly error failure problem outage warning new")
#: Maximum length of a text that is too short to be distinctive, since many words contain it.
_MAX_COMMON_LENGTH = 2
#: Maximum number of words in a phrase whose opposite can be formed, such as `Connection failed`.
_MAX_STATE_PHRASE_WORDS = 2
#: Recovery words that many tools use.
_COMMON_RECOVERIES = (
    *("resolved", "ok", "closed", "recovered", "cleared"),
    *("normal", "restored", "fixed", "inactive"),
)


class State(Enum):
    """The state of an alert that a word names."""

    PROBLEM = "problem"
    RECOVERY = "recovery"


def _list_state_words() -> Iterator[tuple[str, State]]:
    for problem, recovery in _GROUPS:
        yield from ((word, State.PROBLEM) for word in problem.split())
        yield from ((word, State.RECOVERY) for word in recovery.split())


STATE_WORDS: Mapping[str, State] = dict(_list_state_words())
RECOVERY_WORDS = frozenset(word for word, state in STATE_WORDS.items() if state is State.RECOVERY)


@dataclass(frozen=True)
class NamedState:
    """The state that a string names, and the word that names it."""

    state: State
    word: str
    #: True if the text consists only of the word.
    is_plain: bool


def find_state(value: object) -> NamedState | None:
    """Return the state that a short string names, or None.

    If a string names several states, such as `UP -> DOWN`, the last state is the current state. The
    state in a string such as `not OK` or `DOWN from OK` is unclear.
    """
    if not isinstance(value, str) or len(value) > _MAX_STATE_LENGTH:
        return None
    words = split_words(value)
    if not 0 < len(words) <= _MAX_STATE_WORDS or not _STATE_TEXT.fullmatch(value.strip()):
        return None
    if not UNCLEAR_WORDS.isdisjoint(words):
        return None
    is_name = len(words) > 1 and value.strip().isalpha()
    for position, word in enumerate(reversed(words)):
        if (state := STATE_WORDS.get(word)) and not (word in _NOUNS and (is_name or position)):
            return NamedState(state, word, is_plain=len(words) == 1)
    return None


def is_plain_state(value: object) -> bool:
    """Return whether a value is a string that consists only of the word for a state."""
    named = find_state(value)
    return named is not None and named.is_plain


def find_state_in_sentence(text: str) -> NamedState | None:
    """Return the first state that a sentence names in capital letters or at its beginning."""
    words = re.findall(r"[^\W\d_]+", text)
    for position, word in enumerate(words):
        state = STATE_WORDS.get(word.casefold())
        if state and (position == 0 or (word.isupper() and len(word) > 1)):
            return NamedState(state, word.casefold(), is_plain=False)
    return None


def find_opposite_word(text: str, others: Sequence[str]) -> str | None:
    """Return the recovery word in a sentence if all other sentences contain its opposite, or None.

    For `The site is back up` and `The site has gone down`, the word is `up`.
    """
    words, *rest = (set(split_words(each)) for each in (text, *others))
    if not rest or not UNCLEAR_WORDS.isdisjoint(words):
        return None
    for problem, recovery in _GROUPS:
        over, wrong = set(recovery.split()), set(problem.split())
        is_opposite = all(each & wrong and not each & over for each in rest)
        if is_opposite and (found := words & over) and not words & wrong:
            return min(found)
    return None


def list_opposite_words(problems: Collection[str]) -> Iterator[str]:
    """Yield the words of all groups with one of the problem words."""
    for problem, recovery in _GROUPS:
        if not set(problems).isdisjoint(problem.split()):
            yield from (*problem.split(), *recovery.split())


def find_leading_state(value: object) -> tuple[NamedState, str] | None:
    """Return the state at the beginning of a string and the separator after it, or None.

    For `Down (1/3)`, the result is down and ` (`. The rest of the string differs between messages.
    """
    found = _LEADING_WORD.match(value.casefold()) if isinstance(value, str) else None
    if found is None or not UNCLEAR_WORDS.isdisjoint(split_words(str(value))):
        return None
    if (state := STATE_WORDS.get(found[1])) is None:
        return None
    separator = found[2].rstrip()
    is_long = len(found[1]) + len(separator) > _MAX_COMMON_LENGTH
    return (NamedState(state, found[1], is_plain=False), separator) if is_long else None


def list_recovery_values(value: str) -> tuple[str, ...]:
    """Return the values that a sender probably sends in place of a value when the alert is over.

    For `incident.triggered`, these include `incident.resolved`. A value that already names a
    recovery is returned first.
    """
    named = find_state(value)
    if named is None:
        return ()
    text = value.strip().casefold()
    if len(text.split()) > _MAX_STATE_PHRASE_WORDS:
        return ()
    words = [
        word
        for problem, recovery in _GROUPS
        if named.word in problem.split() or named.word in recovery.split()
        for word in recovery.split()
    ]
    if len(text.split()) == 1:
        words += _COMMON_RECOVERIES
    if named.state is State.RECOVERY:
        words.insert(0, named.word)
    head, _, tail = text.rpartition(named.word)
    return tuple(f"{head}{word}{tail}" for word in dict.fromkeys(words))
