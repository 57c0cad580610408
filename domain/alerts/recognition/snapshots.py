"""Finds messages that list the new and the removed problems of an object."""

from collections.abc import Mapping
from typing import NamedTuple

from domain.alerts.parsing.payload_paths import PayloadPath
from domain.alerts.recognition.key_splitting import parse_word_set, split_words

_ADDED_WORDS = parse_word_set("new added opened created introduced")
_REMOVED_WORDS = parse_word_set("removed fixed resolved closed deleted cleared")


class SnapshotKeys(NamedTuple):
    """The keys of the arrays in a message that contain new and removed problems."""

    added: str
    removed: str

    @property
    def question(self) -> str:
        """Question about messages that contain no problem or several problems."""
        return (
            f"Does each message have exactly one problem in {self.added} or {self.removed}? Only "
            "the first problem is read. A message with problems in both resolves the alert of the "
            "new problem. A message without problems opens an alert. If possible, configure the "
            "tool to send one message for each problem."
        )

    def add_removed_problem_path(self, paths: tuple[PayloadPath, ...]) -> tuple[PayloadPath, ...]:
        """Return the paths, followed by the first path's counterpart among the removed problems.

        If the first path is not in the array of new problems, return the paths unchanged.
        """
        first, *rest = paths[0]
        return (*paths, (self.removed, *rest)) if first == self.added else paths


def find_snapshot(message: Mapping[str, object]) -> SnapshotKeys | None:
    """Return the top-level arrays that contain new and removed problems, or None."""
    arrays = {split_words(key): key for key in message if isinstance(message[key], list)}
    for words, added in arrays.items():
        if len(words) > 1 and words[0] in _ADDED_WORDS:
            for word in _REMOVED_WORDS & {each[0] for each in arrays if each[1:] == words[1:]}:
                return SnapshotKeys(added, arrays[(word, *words[1:])])
    return None
