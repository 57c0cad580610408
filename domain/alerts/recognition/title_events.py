"""Finds the value that describes an event, for a title that is only the name of an object."""

from collections.abc import Sequence

from domain.alerts.parsing.payload_paths import find_value
from domain.alerts.recognition.fields import (
    FieldCriteria,
    find_best_leaf,
    is_multiword_title,
    is_named_state,
)
from domain.alerts.recognition.key_splitting import parse_word_set, split_words
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.state_words import (
    SEVERITY_WORDS,
    STATE_WORDS,
    UNCLEAR_WORDS,
    State,
)

#: Kinds of objects whose names describe a problem, such as the name of an alert rule.
_PROBLEM_THINGS = parse_word_set(
    "alert alarm incident issue problem event fault rule trigger condition policy error finding "
    "detection search query violation definition notification metric risk control title subject "
    "slo budget exception vulnerability check scenario"
)
#: Last words of keys for names.
_NAME_KEYS = (("name",), ("label",))
#: State words that do not show what the problem is.
_VAGUE_WORDS = SEVERITY_WORDS | parse_word_set(
    "firing fired fire triggered trigger activated open opened opening reopened reopen alerting "
    "alert alarm alarming problem active ongoing raised raise started start began begin create "
    "created new red yellow orange bad danger investigating identified monitoring"
)


def is_failed_run(leaf: Leaf) -> bool:
    """Return whether a value is the result of a failed run."""
    return leaf.text.casefold() in {"failed", "fail"}


def names_problem(leaf: Leaf) -> bool:
    """Return whether a value contains the word for a kind of problem, such as `down`."""
    words = split_words(leaf.text)
    problems = {word for word in words if STATE_WORDS.get(word) is State.PROBLEM}
    return bool(problems - _VAGUE_WORDS) and UNCLEAR_WORDS.isdisjoint(words)


#: Texts that describe a problem, kinds of events, and states, best first.
_EVENTS = (
    FieldCriteria(
        phrases="error message|failure message|failure reason|error|failure|message|msg|reason|"
        "cause|summary|details|detail|description|text|output|body|info",
        fits=is_multiword_title,
    ),
    FieldCriteria(
        phrases="reason|cause|anomaly|problem|fault|failure",
        fits=lambda leaf: is_named_state(leaf) and " " not in leaf.text,
    ),
    FieldCriteria(
        phrases="event type|event name|event|anomaly|problem|issue|fault|alert type|alarm type|"
        "type|action|trigger|state|status|result|outcome|conclusion|health",
        fits=names_problem,
    ),
)


#: The result of a run whose title describes the run, such as `Deploy 1a5f89db`.
_FAILED_RUN = FieldCriteria(phrases="state|status|result", fits=is_failed_run)


def find_title_event(messages: Messages, title: Leaf, objects: Sequence[Leaf]) -> Leaf | None:
    """Return the value that describes what happened to the object that the title names.

    `objects` are the affected host and service. The result is None if the title already describes
    the problem, or if no value does. A value that is the same in the repeat is preferred. A value
    that is the same in the recovery does not describe the problem.
    """
    if names_problem(title):
        return None
    names = {leaf.text.casefold() for leaf in objects}
    is_name = title.own_words[-1:] in _NAME_KEYS and title.object_word not in _PROBLEM_THINGS
    leaves = [leaf for leaf in messages.leaves if _is_changed(leaf, messages)]
    leaves = [leaf for leaf in leaves if leaf.text.casefold() != title.text.casefold()]
    known = messages.without_recovery.stable_leaves
    stable = [leaf for leaf in leaves if leaf in known]
    kinds: Sequence[FieldCriteria] = ()
    if is_name or title.text.casefold() in names:
        kinds = _EVENTS
    elif UNCLEAR_WORDS.isdisjoint(split_words(title.text)):
        kinds = (_FAILED_RUN,)
    found = (find_best_leaf(kind, each, ()) for each in (stable, leaves) for kind in kinds)
    return next((match.leaf for match in found if match), None)


def _is_changed(leaf: Leaf, messages: Messages) -> bool:
    """Return whether a text may describe the problem, since it is different in the recovery."""
    is_other = leaf.describes_actor_or_past or leaf.belongs_to_run_part or leaf.is_run_reason
    is_same = messages.recovery and find_value(messages.recovery, leaf.path) == leaf.value
    return leaf.is_word and not (is_other or is_same or leaf.is_link or leaf.is_random)
