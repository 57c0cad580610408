"""Proposes the rule that recognizes the recovery of an alert."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping_rules import (
    Operator,
    PayloadCondition,
    is_rule_word,
    normalize_word,
)
from domain.alerts.reading.paths import find_value, format_path
from domain.alerts.reading.severity import USUAL_SEVERITY_WORDS
from domain.alerts.reading.text import convert_to_text
from domain.alerts.recognition.fields import Confidence
from domain.alerts.recognition.key_words import parse_word_set, split_words
from domain.alerts.recognition.leaves import FORMER_WORDS, Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.states import (
    ALL_CLEAR_WORDS,
    CLEAR_PROBLEMS,
    RECOVERY_WORDS,
    SEVERITY_WORDS,
    STATE_WORDS,
    NamedState,
    State,
    find_leading_state,
    find_state,
    find_state_in_sentence,
    list_recovery_values,
)

#: Words in keys whose value is a state, and the weights of the words.
_STATE_KEYS = {
    **dict.fromkeys(("state", "status"), 10),
    "conclusion": 11,
    **dict.fromkeys(("transition", "health"), 9),
    **dict.fromkeys(("action", "event", "notification"), 7),
    **dict.fromkeys(("condition", "result", "outcome", "phase", "current"), 6),
    **dict.fromkeys(("type", "kind", "trigger"), 4),
    "value": 3,
    **dict.fromkeys(("level", "severity", "priority", "color"), 2),
}
_SEVERITY_KEYS = parse_word_set("level severity priority")
#: Minimum weight of a key for states. A severity is only a state if the message also contains the
#: previous severity.
_MIN_WEIGHT = 3
#: Score added for a problem state, because a message can also name parts that work.
_PROBLEM_BONUS = 20
#: Score subtracted for a severity, because few tools use severities as states.
_SEVERITY_COST = 4
_DEPTH_COST = 1.5
_MAX_WORDS = 16
#: Weight of a Boolean under a key that names a state.
_SWITCH_WEIGHT = 6
#: Words that such a key may contain in addition to the word for the state.
_SWITCH_FILLERS = parse_word_set(
    "is has was back to now currently alert alarm incident issue problem state status flag"
)
_SWITCH_VALUES = ("true", "false", "1", "0", "yes", "no")
_IDENTIFIER_WORDS = parse_word_set("id uuid guid key url link")
#: Words in keys whose texts only describe a state. A plain state such as `Down` still counts.
_TEXT_WORDS = parse_word_set("name title description message summary text id")


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """A rule that resolves alerts, and the reason why it was proposed."""

    rule: PayloadCondition
    confidence: Confidence
    reason: str


def propose_resolution(messages: Messages) -> Resolution | None:
    """Return the rule that matches only the recovery, or None if no rule was found."""
    if messages.recovery is not None:
        return _find_difference(messages, messages.recovery)
    found = list(_list_states(messages.leaves))
    if not found:
        return None
    _, leaf, words = max(found, key=lambda each: each[0])
    is_sure_key = bool({"state", "status", "transition"} & set(leaf.own_words))
    is_sure_word = leaf.text.casefold() in CLEAR_PROBLEMS
    return Resolution(
        rule=PayloadCondition(leaf.path, Operator.IS, words[:_MAX_WORDS]),
        confidence=Confidence.LIKELY if is_sure_word and is_sure_key else Confidence.UNSURE,
        reason=f"{format_path(leaf.path)} is a state",
    )


def _weigh_key(leaf: Leaf) -> int:
    """Return the weight of a key for states, or 0 if its value is probably not a state."""
    weight = max((_STATE_KEYS.get(word, 0) for word in leaf.own_words), default=0)
    return max(weight, _SWITCH_WEIGHT) if _is_switch(leaf) else weight


def _is_switch(leaf: Leaf) -> bool:
    """Return whether a key names a state, and its value is true or false."""
    own = set(leaf.own_words)
    states = own - _SWITCH_FILLERS or own & STATE_WORDS.keys()
    is_state = bool(states) and states <= STATE_WORDS.keys()
    return is_state and normalize_word(leaf.value) in _SWITCH_VALUES


def _list_states(leaves: Sequence[Leaf]) -> Iterator[tuple[float, Leaf, tuple[str, ...]]]:
    # Keys of previous values, such as `previousLevel`.
    former = [set(each.own_words) for each in leaves if set(each.own_words) & FORMER_WORDS]
    for leaf in leaves:
        if leaf.is_about_other:
            continue
        weight = _weigh_key(leaf)
        words = _list_recovery_words(leaf, weight)
        if words:
            named = find_state(leaf.value)
            if set(leaf.own_words) & _TEXT_WORDS and not (named and named.is_plain):
                continue
            is_severity_word = named is not None and named.word in SEVERITY_WORDS
            is_state_key = weight >= (_STATE_KEYS["phase"] if is_severity_word else _MIN_WEIGHT)
            if not is_state_key and not any(set(leaf.own_words) <= each for each in former):
                continue
            is_plain = 1 if named and named.is_plain else 0
            is_problem = _PROBLEM_BONUS if _is_problem(named) or _is_switch(leaf) else 0
            weight -= _SEVERITY_COST if is_severity_word else 0
            yield weight + is_problem + is_plain - _DEPTH_COST * leaf.depth, leaf, words


def _list_recovery_words(leaf: Leaf, weight: int) -> tuple[str, ...]:
    """Return the values with which a leaf indicates that the alert is over."""
    if _is_switch(leaf):
        states = [STATE_WORDS[word] for word in leaf.own_words if word in STATE_WORDS]
        position = _SWITCH_VALUES.index(normalize_word(leaf.value))
        # The value of the problem, and the opposite value.
        is_problem = (states[-1] is State.RECOVERY) == bool(position % 2)
        return (_SWITCH_VALUES[position ^ 1],) if is_problem else ()
    if not weight or isinstance(leaf.value, bool):
        return ()
    if isinstance(leaf.value, str):
        return tuple(filter(is_rule_word, list_recovery_values(leaf.value)))
    is_switch = type(leaf.value) is int and leaf.value == 1
    return ("0",) if is_switch and {"state", "status"} & set(leaf.own_words) else ()


def _find_difference(messages: Messages, recovery: Mapping[str, object]) -> Resolution | None:
    """Return a rule for the value that shows the recovery and differs from the other messages."""
    found = []
    for position, leaf in enumerate(list_leaves(recovery)):
        is_id = bool(leaf.own_words) and leaf.own_words[-1] in _IDENTIFIER_WORDS
        if not leaf.is_scalar or leaf.is_time or leaf.is_about_other or is_id:
            continue
        given = [each for each in (messages.firing, messages.repeat) if each is not None]
        before = [find_value(each, leaf.path) for each in given]
        scored = _score_difference(leaf, before)
        if scored and scored[1].matches(recovery) and not any(map(scored[1].matches, given)):
            score, rule = scored
            found.append((score - _DEPTH_COST * leaf.depth, -position, rule))
    if not found:
        return None
    score, _, rule = max(found, key=lambda each: each[:2])
    path = format_path(rule.path)
    return Resolution(
        rule=rule,
        confidence=_rate(score),
        reason=f"only the recovery has {path} {rule.operator.words} “{rule.words[0]}”",
    )


#: Scores for a value that names a recovery, for a different digit, and for a sentence that names a
#: recovery.
_NAMED_SCORE, _DIGIT_SCORE, _SENTENCE_SCORE = 20, 14, 12
#: Score of any value other than a problem state.
_OTHER_SCORE = 3
_GRADED_WORDS = 2
#: Maximum length of a value that consists only of a state.
_MAX_STATE_LENGTH = 20


def _score_difference(
    leaf: Leaf, before: Sequence[object]
) -> tuple[float, PayloadCondition] | None:
    """Return a score for a value of the recovery, and the rule that recognizes it.

    A higher score is stronger evidence that the alert is over. `before` contains the values of the
    same path in the other messages.
    """
    weight = _weigh_key(leaf)
    is_named = find_state(leaf.value) is not None
    if not (weight or is_named) and leaf.text and all(map(_is_plain_problem, before)):
        # The opposite of a state can be a word of any kind.
        problems = tuple(dict.fromkeys(map(normalize_word, before)))
        return _OTHER_SCORE, PayloadCondition(leaf.path, Operator.IS_NOT, problems)
    if contained := _find_contained_word(leaf, before, weight):
        score, word = contained
        return score, PayloadCondition(leaf.path, Operator.CONTAINS, (word,))
    value = normalize_word(leaf.value)
    score, words = _score_value(leaf, before, weight)
    others = set(map(normalize_word, before))
    given = dict.fromkeys((value, *words))
    chosen = [word for word in given if word not in others and is_rule_word(word)]
    if not score or value not in chosen or _has_numbers(value):
        return None
    return score, PayloadCondition(leaf.path, Operator.IS, tuple(chosen[:_MAX_WORDS]))


def _find_contained_word(
    leaf: Leaf, before: Sequence[object], weight: int
) -> tuple[float, str] | None:
    """Return the word in a text that names the recovery, with its score, or None."""
    if graded := _find_graded_recovery(leaf.text):
        return _NAMED_SCORE + weight, graded
    leading, named = find_leading_state(leaf.text), find_state(leaf.value)
    if leading and leading[0].state is State.RECOVERY and weight:
        return _NAMED_SCORE + weight, f"{leading[0].word}{leading[1]}"
    is_state = named is not None and named.state is State.RECOVERY
    if is_state and not _has_numbers(leaf.text):
        return None
    word = _find_recovery_in_sentence(leaf, before)
    # Other messages may also have a lower severity, so a word for a state is preferred.
    is_state = weight >= _STATE_KEYS["event"] and _TEXT_WORDS.isdisjoint(leaf.own_words)
    return (_NAMED_SCORE + 1 if is_state else _SENTENCE_SCORE, word) if word else None


def _has_numbers(text: str) -> bool:
    """Return whether a text is a sentence with numbers, which differ between messages."""
    return " " in text and any(map(str.isdigit, text))


def _score_value(
    leaf: Leaf, before: Sequence[object], weight: int
) -> tuple[float, tuple[str, ...]]:
    """Return a score for a whole value of the recovery, and other values with the same meaning."""
    named, value = find_state(leaf.value), normalize_word(leaf.value)
    if named and named.state is State.RECOVERY:
        is_opposite = any(_is_problem(find_state(each)) for each in before)
        # The level of an event is a weaker sign than the state of an object.
        is_level = "type" in leaf.own_words and {*map(normalize_word, before)} & SEVERITY_WORDS
        weight -= _SEVERITY_COST if is_level else 0
        score = _NAMED_SCORE + weight + 5 * is_opposite + 2 * named.is_plain
        problem = next((each for each in before if isinstance(each, str)), "")
        return score, list_recovery_values(problem) if named.is_plain else ()
    if isinstance(leaf.value, bool) or _is_switch(leaf):
        is_over = _is_switch(leaf) and not _list_recovery_words(leaf, weight)
        return (_NAMED_SCORE if is_over else _DIGIT_SCORE) + weight, ()
    if weight and _is_digit(leaf.value) and before and all(map(_is_digit, before)):
        return _DIGIT_SCORE + weight, ()
    if _SEVERITY_KEYS & set(leaf.own_words) and _is_lowest_severity(value, before):
        return _NAMED_SCORE, ALL_CLEAR_WORDS
    is_short = len(value) <= _MAX_STATE_LENGTH and not leaf.is_link
    return (weight if is_short else 0), ()


def _is_lowest_severity(value: str, before: Sequence[object]) -> bool:
    """Return whether a severity means no problem, unlike all severities in `before`."""
    graded = [USUAL_SEVERITY_WORDS.get(normalize_word(each)) for each in (value, *before)]
    return graded[0] is Severity.INFO and None not in graded and Severity.INFO not in graded[1:]


def _find_graded_recovery(text: str) -> str | None:
    """Return the recovery word that is followed or preceded by one severity.

    For “ResolvedCritical”, this is “resolved”, which recoveries with other severities also contain.
    """
    words = split_words(text)
    if len(words) != _GRADED_WORDS or SEVERITY_WORDS.isdisjoint(words):
        return None
    return next((word for word in words if word in RECOVERY_WORDS), None)


def _find_recovery_in_sentence(leaf: Leaf, before: Sequence[object]) -> str | None:
    """Return the recovery word that only this sentence contains."""
    named = find_state_in_sentence(leaf.text)
    if named is None or named.state is not State.RECOVERY:
        return None
    return None if any(named.word in normalize_word(each) for each in before) else named.word


def _rate(score: float) -> Confidence:
    if score >= _NAMED_SCORE:
        return Confidence.SURE
    return Confidence.LIKELY if score >= _DIGIT_SCORE else Confidence.UNSURE


def _is_digit(value: object) -> bool:
    """Return whether a value is a digit, which some tools use for states."""
    return len(text := convert_to_text(value)) == 1 and text.isdigit()


def _is_plain_problem(value: object) -> bool:
    named = find_state(value)
    return _is_problem(named) and named is not None and named.is_plain


def _is_problem(named: NamedState | None) -> bool:
    return named is not None and named.state is State.PROBLEM
