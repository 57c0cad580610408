"""Proposes the rule that recognizes the recovery of an alert."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping_rules import (
    Operator,
    PayloadCondition,
    is_rule_word,
    normalize_word,
)
from domain.alerts.parsing.payload_paths import find_value, format_path
from domain.alerts.parsing.severity import USUAL_SEVERITY_WORDS
from domain.alerts.parsing.text_conversion import convert_to_text
from domain.alerts.parsing.whole_words import contains_unnegated_word
from domain.alerts.recognition.fields import Confidence
from domain.alerts.recognition.key_splitting import parse_word_set, split_words
from domain.alerts.recognition.leaves import FORMER_WORDS, Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.state_words import (
    ALL_CLEAR_WORDS,
    CLEAR_PROBLEMS,
    RECOVERY_WORDS,
    SEVERITY_WORDS,
    STATE_WORDS,
    NamedState,
    State,
    find_leading_state,
    find_opposite_word,
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
    "code": 4,
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
#: Score subtracted for the state of an object if the type of the event also names a state.
_OBJECT_COST = 10
_DEPTH_COST = 1.5
_MAX_WORDS = 16
#: Weight of a Boolean under a key that names a state.
_SWITCH_WEIGHT = 6
#: Words that such a key may contain in addition to the word for the state.
_SWITCH_FILLERS = parse_word_set(
    "is has was back to now currently alert alarm incident issue problem state status flag"
)
_SWITCH_VALUES = ("true", "false", "1", "0", "yes", "no")
_OBJECT_WORDS = parse_word_set("device host server machine")
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
    rated = [
        (score, leaf, PayloadCondition(leaf.path, Operator.IS, words[:_MAX_WORDS]))
        for score, leaf, words in _list_states(messages.leaves)
    ]
    # A rule that also matches the repeat is about another change, for example of a counter.
    found = [each for each in rated if not (messages.repeat and each[2].matches(messages.repeat))]
    if not found:
        return None
    _, leaf, rule = max(found, key=lambda each: each[0])
    is_sure_key = bool({"state", "status", "transition"} & set(leaf.own_words))
    is_sure_word = leaf.text.casefold() in CLEAR_PROBLEMS
    return Resolution(
        rule=rule,
        confidence=Confidence.LIKELY if is_sure_word and is_sure_key else Confidence.UNSURE,
        reason=f"{format_path(leaf.path)} is a state",
    )


def _weigh_key(leaf: Leaf) -> int:
    """Return the weight of a key as evidence of a state.

    The weight is 0 if the value of the key is probably not a state.
    """
    weight = max((_STATE_KEYS.get(word, 0) for word in leaf.own_words), default=0)
    return max(weight, _SWITCH_WEIGHT) if _is_boolean_state(leaf) else weight


def _is_boolean_state(leaf: Leaf) -> bool:
    """Return whether a key names a state, and its value is true or false."""
    own = set(leaf.own_words)
    states = own - _SWITCH_FILLERS or own & STATE_WORDS.keys()
    is_state = bool(states) and states <= STATE_WORDS.keys()
    return is_state and normalize_word(leaf.value) in _SWITCH_VALUES


def _list_states(leaves: Sequence[Leaf]) -> Iterator[tuple[float, Leaf, tuple[str, ...]]]:
    # Keys of previous values, such as `previousLevel`.
    former = [set(each.own_words) for each in leaves if set(each.own_words) & FORMER_WORDS]
    is_problem = any(map(_is_graded_problem, leaves))
    for leaf in leaves:
        # In a message about a problem, a part of the object can be healthy.
        named = find_state(leaf.value)
        is_healthy = named is not None and named.state is State.RECOVERY
        is_message_type = leaf.own_words == ("type",) and leaf.text.casefold() == "alert"
        if leaf.describes_actor_or_past or (is_problem and is_healthy and leaf.depth):
            continue
        if is_message_type:
            continue
        weight = _weigh_key(leaf)
        words = _list_recovery_words(leaf, weight)
        if words:
            if set(leaf.own_words) & _TEXT_WORDS and not (named and named.is_plain):
                continue
            is_severity_word = named is not None and named.word in SEVERITY_WORDS
            is_state_key = weight >= (_STATE_KEYS["phase"] if is_severity_word else _MIN_WEIGHT)
            if not is_state_key and not any(set(leaf.own_words) <= each for each in former):
                continue
            is_plain = 1 if named and named.is_plain else 0
            bonus = _PROBLEM_BONUS if _is_problem(named) or _is_boolean_state(leaf) else 0
            weight -= _SEVERITY_COST if is_severity_word else 0
            weight -= _OBJECT_COST if _is_state_named_by_event(leaf, leaves) else 0
            yield weight + bonus + is_plain - _DEPTH_COST * leaf.depth, leaf, words


def _is_graded_problem(leaf: Leaf) -> bool:
    """Return whether a value is the severity of a problem."""
    severity = USUAL_SEVERITY_WORDS.get(normalize_word(leaf.value))
    return bool(_SEVERITY_KEYS & set(leaf.own_words)) and severity not in (None, Severity.INFO)


def _is_state_named_by_event(leaf: Leaf, leaves: Sequence[Leaf]) -> bool:
    """Return whether a value is the state of an object that the type of the event also names.

    Events about other problems of the object also contain its state. For example, a message about
    the speed of a device also contains the state `online`.
    """
    named = find_state(leaf.value)
    if named is None or _OBJECT_WORDS.isdisjoint(leaf.words[:-1]):
        return False
    types = [each for each in leaves if each.own_words[-1:] == ("type",) and each.is_word]
    states = (find_state(each.value) for each in types if _OBJECT_WORDS.isdisjoint(each.words))
    return any(each.state is named.state for each in states if each)


def _list_recovery_words(leaf: Leaf, weight: int) -> tuple[str, ...]:
    """Return the values of a leaf that indicate that its alert is resolved."""
    if _is_boolean_state(leaf):
        states = [STATE_WORDS[word] for word in leaf.own_words if word in STATE_WORDS]
        position = _SWITCH_VALUES.index(normalize_word(leaf.value))
        # If the value indicates the problem, the opposite value indicates the recovery.
        is_problem = (states[-1] is State.RECOVERY) == bool(position % 2)
        return (_SWITCH_VALUES[position ^ 1],) if is_problem else ()
    if not weight or isinstance(leaf.value, bool):
        return ()
    if isinstance(leaf.value, str):
        return tuple(filter(is_rule_word, list_recovery_values(leaf.value)))
    is_switch = type(leaf.value) is int and leaf.value == 1
    return ("0",) if is_switch and {"state", "status"} & set(leaf.own_words) else ()


def _find_difference(messages: Messages, recovery: Mapping[str, object]) -> Resolution | None:
    """Return a rule for a value that indicates the recovery and differs in the other messages."""
    found = []
    leaves = list_leaves(recovery)
    for position, leaf in enumerate(leaves):
        is_id = bool(leaf.own_words) and leaf.own_words[-1] in _IDENTIFIER_WORDS
        if not leaf.is_scalar or leaf.is_time or leaf.describes_actor_or_past or is_id:
            continue
        given = [each for each in (messages.firing, messages.repeat) if each is not None]
        before = [find_value(each, leaf.path) for each in given]
        scored = _score_difference(leaf, before)
        if scored and scored[1].matches(recovery) and not any(map(scored[1].matches, given)):
            score, rule = scored
            score -= _OBJECT_COST if _is_state_named_by_event(leaf, leaves) else 0
            found.append((score - _DEPTH_COST * leaf.depth, -position, rule))
    if not found:
        return _find_missing_part(messages, recovery)
    score, _, rule = max(found, key=lambda each: each[:2])
    path = format_path(rule.path)
    return Resolution(
        rule=rule,
        confidence=_get_score_confidence(score),
        reason=f"only in the recovery, {path} {rule.operator.phrase} “{rule.words[0]}”",
    )


def _find_missing_part(messages: Messages, recovery: Mapping[str, object]) -> Resolution | None:
    """Return a rule for an array or object that only the recovery lacks, or None."""
    given = [each for each in (messages.firing, messages.repeat) if each is not None]
    for key in messages.firing:
        is_part = all(isinstance(each.get(key), list | dict) and each[key] for each in given)
        if is_part and not recovery.get(key):
            return Resolution(
                rule=PayloadCondition((key,), Operator.IS_MISSING, ("yes",)),
                confidence=Confidence.UNSURE,
                reason=f"only the recovery has no {format_path((key,))}",
            )
    return None


#: Scores for a value that names a recovery, for a different digit, and for a sentence that names a
#: recovery.
_NAMED_SCORE, _DIGIT_SCORE, _SENTENCE_SCORE = 20, 14, 12
#: Score of any value other than a problem state.
_OTHER_SCORE = 3
#: Score subtracted for several words under a key that does not name a state.
_SENTENCE_COST = 8
_GRADED_WORDS = 2
#: Last words of keys for titles, and words in titles that only the recovery contains.
_TITLE_KEYS = (("title",), ("subject",), ("summary",), ("headline",), ("name",))
_CLEAR_WORDS = ("resolved", "recovered", "cleared", "restored")
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
        # The recovery can have any value other than the values of the problem.
        problems = tuple(dict.fromkeys(map(normalize_word, before)))
        return _OTHER_SCORE, PayloadCondition(leaf.path, Operator.IS_NOT, problems)
    if contained := _find_contained_word(leaf, before, weight):
        score, word = contained
        return score, PayloadCondition(leaf.path, Operator.CONTAINS_WORD, (word,))
    value = normalize_word(leaf.value)
    score, words = _score_value(leaf, before, weight)
    others = set(map(normalize_word, before))
    given = dict.fromkeys((value, *words))
    chosen = [word for word in given if word not in others and is_rule_word(word)]
    if not score or value not in chosen or _is_sentence_with_numbers(value):
        return None
    return score, PayloadCondition(leaf.path, Operator.IS, tuple(chosen[:_MAX_WORDS]))


def _find_contained_word(
    leaf: Leaf, before: Sequence[object], weight: int
) -> tuple[float, str] | None:
    """Return the word in a string that names the recovery, with its score, or None."""
    if graded := _find_recovery_word_with_severity(leaf.text):
        return _NAMED_SCORE + weight, graded
    leading, named = find_leading_state(leaf.text), find_state(leaf.value)
    if leading and leading[0].state is State.RECOVERY and weight:
        return _NAMED_SCORE + weight, f"{leading[0].word}{leading[1]}"
    is_state = named is not None and named.state is State.RECOVERY
    if is_state and not _is_sentence_with_numbers(leaf.text):
        return None
    word = _find_recovery_in_sentence(leaf, before)
    if word is None and leaf.own_words[-1:] in _TITLE_KEYS:
        # Only a title is used, since a longer text can mention earlier recoveries.
        words = (each for each in _CLEAR_WORDS if contains_unnegated_word(leaf.text, each))
        known = [convert_to_text(each) for each in before]
        word = next((each for each in words if not _contains_word(known, each)), None)
        return (_OTHER_SCORE, word) if word else None
    # Other messages may also have a lower severity, so a state word is preferred.
    is_state = weight >= _STATE_KEYS["event"] and _TEXT_WORDS.isdisjoint(leaf.own_words)
    return (_NAMED_SCORE + 1 if is_state else _SENTENCE_SCORE, word) if word else None


def _is_sentence_with_numbers(text: str) -> bool:
    """Return whether a string is a sentence with numbers, which differ between messages."""
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
        # The same key can contain other sentences about a recovery.
        weight -= _SENTENCE_COST if " " in value and not weight else 0
        score = _NAMED_SCORE + weight + 5 * is_opposite + 2 * named.is_plain
        problem = next((each for each in before if isinstance(each, str)), "")
        return score, list_recovery_values(problem) if named.is_plain else ()
    if isinstance(leaf.value, bool) or _is_boolean_state(leaf):
        is_over = _is_boolean_state(leaf) and not _list_recovery_words(leaf, weight)
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


def _find_recovery_word_with_severity(text: str) -> str | None:
    """Return the recovery word in a string that consists of this word and a severity, or None.

    For “ResolvedCritical”, the result is “resolved”. Recoveries with other severities contain the
    same word.
    """
    words = split_words(text)
    if len(words) != _GRADED_WORDS or SEVERITY_WORDS.isdisjoint(words):
        return None
    return next((word for word in words if word in RECOVERY_WORDS), None)


def _find_recovery_in_sentence(leaf: Leaf, before: Sequence[object]) -> str | None:
    """Return the recovery word in a sentence, unless an earlier message contains the same word."""
    others = list(map(convert_to_text, before))
    named = find_state_in_sentence(leaf.text)
    if named is None or named.state is not State.RECOVERY:
        return find_opposite_word(leaf.text, others)
    return None if _contains_word(others, named.word) else named.word


def _contains_word(texts: Sequence[str], word: str) -> bool:
    return any(contains_unnegated_word(each, word) for each in texts)


def _get_score_confidence(score: float) -> Confidence:
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
