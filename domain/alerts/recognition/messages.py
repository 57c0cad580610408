"""The messages of one alert that a proposal is based on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from domain.alerts.reading.paths import PayloadPath, find_value
from domain.alerts.recognition.fields import Confidence
from domain.alerts.recognition.leaves import Leaf, list_leaves


@dataclass(frozen=True, kw_only=True)
class Messages:
    """The first message of an alert, and optionally a repeat and the recovery of the same alert."""

    firing: Mapping[str, object]
    repeat: Mapping[str, object] | None = None
    recovery: Mapping[str, object] | None = None

    @cached_property
    def leaves(self) -> Sequence[Leaf]:
        """Values of the first message."""
        return list_leaves(self.firing)

    @property
    def others(self) -> tuple[Mapping[str, object], ...]:
        """The repeat and the recovery, if they are known."""
        return tuple(each for each in (self.repeat, self.recovery) if each is not None)

    @property
    def without_recovery(self) -> "Messages":
        """The messages about the problem."""
        return Messages(firing=self.firing, repeat=self.repeat)

    @property
    def confidence(self) -> Confidence:
        """Confidence in values that are the same in all messages."""
        return Confidence.LIKELY if self.recovery is None else Confidence.SURE

    @cached_property
    def stable_leaves(self) -> Sequence[Leaf]:
        """Values that are the same in all messages."""
        return [leaf for leaf in self.leaves if self._is_stable(leaf.path, leaf.value)]

    def _is_stable(self, path: PayloadPath, value: object) -> bool:
        return all(find_value(other, path) == value for other in self.others)
