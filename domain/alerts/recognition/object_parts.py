"""Finds the parts of objects that messages name, such as the port of a switch."""

from collections.abc import Sequence

from domain.alerts.recognition.identity_words import ID_WORDS, NAME_WORDS, PARAMETER_WORDS
from domain.alerts.recognition.key_splitting import parse_word_set
from domain.alerts.recognition.leaves import Leaf

#: Words in keys for parts that have only a number, and for parts that can also have a name.
_NUMBERED_WORDS = parse_word_set("port slot channel partition index")
_PART_WORDS = _NUMBERED_WORDS | parse_word_set("interface disk shard keyspace")


def list_parts(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return the names and numbers of parts, such as the port of a switch."""
    found: dict[tuple[object, ...], Leaf] = {}
    for leaf in leaves:
        kinds = set(leaf.own_words) - ID_WORDS - NAME_WORDS
        is_number = str(leaf.value).isdecimal() and not isinstance(leaf.value, bool)
        is_name = leaf.is_word and " " not in leaf.text and _NUMBERED_WORDS.isdisjoint(kinds)
        is_other = leaf.is_link or any(isinstance(key, int) for key in leaf.path)
        is_other |= leaf.describes_actor_or_past and kinds != {"channel"}
        is_other |= not PARAMETER_WORDS.isdisjoint(leaf.words)
        is_other |= kinds == {"index"} and not leaf.depth
        if len(kinds) == 1 and kinds <= _PART_WORDS and (is_number or is_name) and not is_other:
            found.setdefault((*kinds, str(leaf.value)), leaf)
    return list(found.values())


def list_series(leaves: Sequence[Leaf], rule: Leaf | None) -> list[Leaf]:
    """Return the names of time series, such as `servers.db-1.load`, which can contain a host."""
    named = [leaf for leaf in leaves if leaf.own_words == ("metric",) and leaf != rule]
    return [leaf for leaf in named if rule and "." in leaf.text and " " not in leaf.text]
