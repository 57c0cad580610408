"""The messages of one alert that a proposal is based on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from domain.alerts.parsing.payload_paths import PayloadPath, find_value
from domain.alerts.recognition.fields import Confidence
from domain.alerts.recognition.leaves import Leaf, list_leaves


@dataclass(frozen=True, kw_only=True)
class Messages:
    """The first message of an alert, with an optional repeat and an optional recovery message."""

    firing: Mapping[str, object]
    repeat: Mapping[str, object] | None = None
    recovery: Mapping[str, object] | None = None

    @cached_property
    def leaves(self) -> Sequence[Leaf]:
        """Values of the first message."""
        return list_leaves(self.firing)

    @property
    def other_messages(self) -> tuple[Mapping[str, object], ...]:
        """The repeat and the recovery, if they are known."""
        return tuple(each for each in (self.repeat, self.recovery) if each is not None)

    @property
    def without_recovery(self) -> "Messages":
        """Copy of the messages without the recovery."""
        return Messages(firing=self.firing, repeat=self.repeat)

    @property
    def confidence(self) -> Confidence:
        """Confidence in values that are the same in all messages."""
        return Confidence.LIKELY if self.recovery is None else Confidence.SURE

    @cached_property
    def stable_leaves(self) -> Sequence[Leaf]:
        """Values that are the same in all messages."""
        return [leaf for leaf in self.leaves if self._is_stable(leaf.path, leaf.value)]

    def list_paths(self, leaf: Leaf, path: PayloadPath | None = None) -> tuple[PayloadPath, ...]:
        """Return the path of a value, and its path in the recovery if it differs."""
        moved = self.find_moved_leaf(leaf)
        return (path or leaf.path, *([moved.path] if moved else ()))

    def find_moved_leaf(self, leaf: Leaf) -> Leaf | None:
        """Return the leaf with the same value under a different key in the recovery, or None.

        The different key may contain only words of the original key. The result is None if the
        recovery also contains the original key.
        """
        recovery = self.recovery or {}
        is_other = isinstance(leaf.value, bool) or not leaf.is_scalar or leaf.is_time
        if is_other or find_value(recovery, leaf.path) is not None:
            return None
        for other in sorted(list_leaves(recovery), key=lambda each: each.depth):
            if not set(other.words) <= set(leaf.words):
                continue
            if isinstance(other.value, list) and leaf.value in other.value:
                path = (*other.path, other.value.index(leaf.value))
                return replace(other, path=path, value=leaf.value)
            if other.value == leaf.value:
                return other
        return None

    def _is_stable(self, path: PayloadPath, value: object) -> bool:
        return all(find_value(other, path) == value for other in self.other_messages)
