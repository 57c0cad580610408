"""Proposes the rule that recognizes the recovery of an alert."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.alerts.reading.mapping_rules import Operator, PayloadCondition, normalize_word
from domain.alerts.reading.paths import find_value, format_path
from domain.alerts.reading.text import convert_to_text
from domain.alerts.recognition.fields import FORMER_WORDS, OWNER_WORDS, Confidence
from domain.alerts.recognition.leaves import Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.states import (
    SEVERITY_WORDS,
    STATE_WORDS,
    NamedState,
    State,
    find_state,
    find_state_in_sentence,
    list_recovery_values,
)

#: Words of keys whose value is a state, with their weight.
_STATE_KEYS = {
    **dict.fromkeys(("state", "status"), 10),
    **dict.fromkeys(("transition", "health"), 9),
    **dict.fromkeys(("action", "event", "notification"), 7),
    **dict.fromkeys(("condition", "result", "outcome", "phase"), 6),
    **dict.fromkeys(("type", "kind", "trigger"), 4),
    "value": 3,
    **dict.fromkeys(("level", "severity", "priority", "color"), 2),
}
#: Lowest weight of keys for states. A severity is only a state if the message also has the
#: previous one.
_MIN_WEIGHT = 3
#: A state that is a problem is preferred: a message can also name parts that work.
_PROBLEM_BONUS = 20
#: Severities are states of fewer tools than other words.
_SEVERITY_COST = 4
_DEPTH_COST = 1.5
_MAX_WORDS = 8


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """A rule that resolves alerts, with the reason for it."""

    rule: PayloadCondition
    confidence: Confidence
    reason: str


def propose_resolution(messages: Messages) -> Resolution | None:
    """Return the rule that tells the recovery from other messages, or None if none was found."""
    if messages.recovery is not None:
        return _find_difference(messages)
    found = list(_list_states(messages.leaves))
    if not found:
        return None
    _, leaf, words = max(found, key=lambda each: each[0])
    is_sure_key = bool({"state", "status", "transition"} & set(leaf.own_words))
    is_word = isinstance(leaf.value, str)
    return Resolution(
        rule=PayloadCondition(leaf.path, Operator.IS, words[:_MAX_WORDS]),
        confidence=Confidence.LIKELY if is_word and is_sure_key else Confidence.UNSURE,
        reason=f"{format_path(leaf.path)} is a state",
    )


def _list_states(leaves: Sequence[Leaf]) -> Iterator[tuple[float, Leaf, tuple[str, ...]]]:
    for leaf in leaves:
        if set(leaf.words) & (FORMER_WORDS | OWNER_WORDS):
            continue
        weight = max((_STATE_KEYS.get(word, 0) for word in leaf.own_words), default=0)
        words = _list_recovery_words(leaf, weight)
        if words:
            named = find_state(leaf.value)
            is_severity_word = named is not None and named.word in SEVERITY_WORDS
            is_state_key = weight >= (_STATE_KEYS["phase"] if is_severity_word else _MIN_WEIGHT)
            if not is_state_key and not _has_former_state(leaf, leaves):
                continue
            is_plain = 1 if named and named.is_plain else 0
            is_problem = _PROBLEM_BONUS if _is_problem(named) else 0
            weight -= _SEVERITY_COST if is_severity_word else 0
            yield weight + is_problem + is_plain - _DEPTH_COST * leaf.depth, leaf, words


def _has_former_state(leaf: Leaf, leaves: Sequence[Leaf]) -> bool:
    """Return whether a message also has the previous value of a leaf, such as `previousLevel`."""
    return any(
        set(other.own_words) & FORMER_WORDS and set(leaf.own_words) <= set(other.own_words)
        for other in leaves
    )


def _list_recovery_words(leaf: Leaf, weight: int) -> tuple[str, ...]:
    """Return the values of a leaf that mean that the alert is over."""
    if isinstance(leaf.value, bool):
        state = next((STATE_WORDS[w] for w in leaf.own_words if w in STATE_WORDS), None)
        if state is None:
            return ()
        return ("true",) if state is State.RECOVERY else ("false",)
    if not weight:
        return ()
    if isinstance(leaf.value, str):
        return list_recovery_values(leaf.value)
    is_switch = type(leaf.value) is int and leaf.value == 1
    return ("0",) if is_switch and {"state", "status"} & set(leaf.own_words) else ()


def _find_difference(messages: Messages) -> Resolution | None:
    """Return a rule for the value that shows the recovery and differs from the other messages."""
    assert messages.recovery is not None
    found = []
    for position, leaf in enumerate(list_leaves(messages.recovery)):
        if not leaf.is_scalar or leaf.is_time or set(leaf.words) & (FORMER_WORDS | OWNER_WORDS):
            continue
        before = [find_value(each, leaf.path) for each in (messages.firing, messages.repeat) if each]
        if any(normalize_word(each) == normalize_word(leaf.value) for each in before):
            continue
        if scored := _score_difference(leaf, before):
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


#: Score of a value that names a recovery, of a number that differs, and of a sentence.
_NAMED_SCORE, _NUMBER_SCORE, _SENTENCE_SCORE = 20, 14, 12


def _score_difference(leaf: Leaf, before: Sequence[object]) -> tuple[float, PayloadCondition] | None:
    weight = max((_STATE_KEYS.get(word, 0) for word in leaf.own_words), default=0)
    named = find_state(leaf.value)
    value = normalize_word(leaf.value)
    if named and named.state is State.RECOVERY:
        is_opposite = any(_is_problem(find_state(each)) for each in before)
        score = _NAMED_SCORE + weight + 5 * is_opposite + 2 * named.is_plain
        first = next((each for each in before if isinstance(each, str)), "")
        words = dict.fromkeys((value, *_list_plain_recoveries(first, named)))
        if "," in value:
            return None
        return score, PayloadCondition(leaf.path, Operator.IS, tuple(words)[:_MAX_WORDS])
    if isinstance(leaf.value, bool):
        return _NAMED_SCORE + weight, PayloadCondition(leaf.path, Operator.IS, (value,))
    if weight and _is_code(leaf.value) and before and all(map(_is_code, before)):
        return _NUMBER_SCORE + weight, PayloadCondition(leaf.path, Operator.IS, (value,))
    in_sentence = find_state_in_sentence(leaf.text)
    if in_sentence and in_sentence.state is State.RECOVERY and all(
        in_sentence.word not in normalize_word(each) for each in before
    ):
        rule = PayloadCondition(leaf.path, Operator.CONTAINS, (in_sentence.word,))
        return _SENTENCE_SCORE, rule
    if weight and not leaf.is_link and not leaf.is_uuid and len(value) <= 20 and "," not in value:  # noqa: PLR2004
        return weight, PayloadCondition(leaf.path, Operator.IS, (value,))
    return None


def _rate(score: float) -> Confidence:
    if score >= _NAMED_SCORE:
        return Confidence.SURE
    return Confidence.LIKELY if score >= _NUMBER_SCORE else Confidence.UNSURE


def _is_code(value: object) -> bool:
    """Return whether a value is a digit, which some tools use for states."""
    return len(text := convert_to_text(value)) == 1 and text.isdigit()


def _is_problem(named: NamedState | None) -> bool:
    return named is not None and named.state is State.PROBLEM


def _list_plain_recoveries(problem: str, recovery: NamedState) -> tuple[str, ...]:
    return list_recovery_values(problem) if recovery.is_plain else ()
