"""Finds messages that list the new and the removed problems of an object."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.alerts.reading.paths import PayloadPath, format_path
from domain.alerts.recognition.key_words import parse_word_set, split_words

_ADDED_WORDS = parse_word_set("new added opened created introduced")
_REMOVED_WORDS = parse_word_set("removed fixed resolved closed deleted cleared")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The two arrays of a message that lists new and removed problems."""

    added: PayloadPath
    removed: PayloadPath

    @property
    def question(self) -> str:
        """Question about messages that do not contain exactly one problem."""
        added, removed = map(format_path, (self.added, self.removed))
        return (
            f"Do messages list one problem in {added} or {removed}? Only the first one is read. A "
            f"message with both resolves the alert over its new problem, and a message without "
            "problems opens an alert. If the tool can, let it send each problem on its own."
        )

    def contains(self, path: PayloadPath) -> bool:
        """Return whether a path leads into one of the arrays."""
        return any(path[: len(each)] == each for each in (self.added, self.removed))

    def find_counterpart(self, path: PayloadPath) -> PayloadPath | None:
        """Return the path of the same value of a removed problem, or None if there is none."""
        is_item = path[: len(self.added)] == self.added
        return (*self.removed, *path[len(self.added) :]) if is_item else None

    def add_counterpart(self, paths: tuple[PayloadPath, ...]) -> tuple[PayloadPath, ...]:
        """Return paths with the path of the same value of a removed problem, if there is one."""
        return tuple(filter(None, (*paths, self.find_counterpart(paths[0]))))


def find_snapshot(message: Mapping[str, object]) -> Snapshot | None:
    """Return the arrays at the top that contain new and removed problems, or None."""
    arrays = {split_words(key): key for key in message if isinstance(message[key], list)}
    for words, added in arrays.items():
        if len(words) == 1 or _ADDED_WORDS.isdisjoint(words[:1]):
            continue
        for word in _REMOVED_WORDS:
            if removed := arrays.get((word, *words[1:])):
                return Snapshot(added=(added,), removed=(removed,))
    return None
