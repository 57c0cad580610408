"""Proposes the words of a text that identify an alert, if no other value does."""

from collections.abc import Collection

from domain.alerts.parsing.changing_words import remove_changing_words
from domain.alerts.parsing.mapping_rules import (
    MAX_IGNORED_WORDS,
    MAX_JOINED_VALUES,
    is_rule_word,
)
from domain.alerts.parsing.payload_paths import PayloadPath, find_value, format_path
from domain.alerts.recognition.fields import Confidence
from domain.alerts.recognition.identity import Identity
from domain.alerts.recognition.identity_words import AREA_WORDS, TEXT_KEYS
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.state_words import (
    STATE_WORDS,
    UNCLEAR_WORDS,
    State,
    list_opposite_words,
)

#: Last words of keys whose values are texts about the problem, in addition to TEXT_KEYS.
_TITLE_KEYS = (("title",), ("subject",), ("heading",), ("headline",), ("body",), ("content",))
_MAX_LENGTH = 300
#: Ignored words of a proposal for messages that name no state.
_COMMON_WORDS = ("resolved", "recovered", "ok")


def prefer_text(
    found: Identity | None, messages: Messages, title: PayloadPath | None
) -> Identity | None:
    """Return an identity that consists of the unchanging words of a text, or `found`.

    A text is only used if the other values do not identify the alert. The words that remain must be
    the same in all messages, so that repeats and recoveries join the alert.
    """
    if found is not None and not _is_vague(found, messages):
        return found
    texts = sorted(filter(_is_sentence, messages.leaves), key=lambda leaf: leaf.path != title)
    ignored = _list_ignored_words(messages, texts)
    remaining = {leaf.path: _find_remaining_words(leaf, messages, ignored) for leaf in texts}
    # A single word is not more specific than the whole text.
    is_text = found is not None and any(leaf.path in found.paths for leaf in texts)
    known = {path: words for path, words in remaining.items() if len(words) > is_text}
    if not known:
        return found
    first = next(iter(known))
    for path, words in known.items():
        first = path if words > known[first] else first
    paths = [first]
    if messages.other_messages:
        # Each text can name a part of the object.
        for path, words in known.items():
            covered = {word for each in paths for word in known[each]}
            paths += [] if words <= covered else [path]
    stable = {leaf.path for leaf in messages.stable_leaves if leaf not in texts}
    paths += [path for path in (found.paths if found else ()) if path in stable]
    return Identity(
        paths=tuple(paths)[: MAX_JOINED_VALUES + 1],
        confidence=Confidence.UNSURE,
        reason=f"{format_path(first)} is compared without the words that change",
        ignored_words=ignored,
    )


def _is_vague(found: Identity, messages: Messages) -> bool:
    """Return whether an identity consists only of places, or of a text that will change."""
    chosen = [leaf for leaf in messages.leaves if leaf.path in found.paths]
    texts = [leaf for leaf in chosen if _is_sentence(leaf)]
    if not all(leaf in texts or AREA_WORDS.intersection(leaf.own_words) for leaf in chosen):
        return False
    words = {word.casefold() for leaf in texts for word in _list_words(leaf.value)}
    is_changing = messages.recovery is None and not words.isdisjoint(STATE_WORDS)
    return found.is_partial or (found.may_merge_hosts and (not texts or is_changing))


def _is_sentence(leaf: Leaf) -> bool:
    is_text = leaf.own_words[-1:] in (*TEXT_KEYS, *_TITLE_KEYS) and len(leaf.text) <= _MAX_LENGTH
    return is_text and " " in leaf.text and not (leaf.is_generic or leaf.describes_actor_or_past)


def _list_words(text: object) -> set[str]:
    return set(remove_changing_words(text, ()).split()) if isinstance(text, str) else set()


def _list_ignored_words(messages: Messages, texts: Collection[Leaf]) -> tuple[str, ...]:
    """Return the words for the states in the texts, and for their opposites."""
    ignored: dict[str, None] = {}
    for leaf in texts:
        firing, *others = (
            {word.casefold() for word in _list_words(find_value(each, leaf.path))}
            for each in (messages.firing, *messages.other_messages)
        )
        common = firing.intersection(*others) if messages.recovery is not None else set()
        changed = (firing.union(*others) - common) & (STATE_WORDS.keys() | UNCLEAR_WORDS)
        problems = [word for word in changed if STATE_WORDS.get(word) is State.PROBLEM]
        ignored |= dict.fromkeys(sorted(changed))
        ignored |= dict.fromkeys(list_opposite_words(problems))
    words = filter(is_rule_word, ignored or _COMMON_WORDS)
    return tuple(words)[:MAX_IGNORED_WORDS]


def _find_remaining_words(
    leaf: Leaf, messages: Messages, ignored: Collection[str]
) -> frozenset[str]:
    """Return the words that remain of a text, or no words if they differ between messages.

    A single word at the beginning, as in `Backup failed`, does not name an object.
    """
    given = [find_value(each, leaf.path) for each in (messages.firing, *messages.other_messages)]
    texts = {remove_changing_words(str(each), ignored) for each in given}
    words = frozenset(texts.pop().split()) if len(texts) == 1 else frozenset()
    first = leaf.text.split()[0]
    is_action = words == {first} and first.isalpha() and first[0].isupper()
    return frozenset() if is_action else words
