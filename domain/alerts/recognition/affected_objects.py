"""Finds the affected object of a message without a host."""

from collections import Counter
from collections.abc import Collection, Sequence

from domain.alerts.parsing.payload_paths import PayloadPath, format_path
from domain.alerts.recognition.fields import (
    AREA_WORDS,
    IDENTIFIER_WORDS,
    NOT_AFFECTED,
    SCOPE_WORDS,
    Confidence,
    FieldMatch,
    is_host,
    is_host_name,
    is_probable_object_name,
)
from domain.alerts.recognition.identity_words import ENTITY_WORDS
from domain.alerts.recognition.key_splitting import parse_word_set, split_words
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.state_words import find_state

_AFFECTED_WORDS = parse_word_set("affected impacted compromised violating")
#: Last words of keys for kinds of objects, such as machine types.
_KIND_WORDS = parse_word_set("class type size version image model")


def find_affected_object(
    leaves: Sequence[Leaf], taken: Collection[PayloadPath]
) -> FieldMatch | None:
    """Return the name of the affected object, or None.

    An object whose key marks it as affected is preferred. Otherwise, the least nested object with a
    name and an identifier is used. If a message contains no links, the affected object can also be
    an agent.
    """
    identified = {
        each.object_word
        for each in leaves
        if set(each.own_words) & IDENTIFIER_WORDS and each.own_words[-1] != "name"
    }
    found = [
        leaf
        for leaf in leaves
        if leaf.own_words[-1:] in (("name",), ("label",))
        and leaf.object_word in identified - NOT_AFFECTED - SCOPE_WORDS
        and not (leaf.describes_actor_or_past or leaf.path in taken)
        and (is_host(leaf) or _is_object_label(leaf))
    ]
    affected = [
        leaf
        for leaf in leaves
        if not (_AFFECTED_WORDS.isdisjoint(leaf.words) or leaf.describes_actor_or_past)
        and (leaf.own_words[-1:] == ("name",) or set(leaf.own_words) & _AFFECTED_WORDS)
        and leaf.path not in taken
        and is_host(leaf)
    ]
    found = (
        affected
        or found
        or [leaf for leaf in leaves if _is_resource_name(leaf) and leaf.path not in taken]
        or [
            leaf
            for leaf in leaves
            if is_probable_object_name(leaf, [*taken, *(each.path for each in leaves)])
        ]
    )
    if not found:
        # Some messages contain the results of each host under a key with the host's name.
        listed = [leaf.path for leaf in leaves if split_words(str(leaf.path[0])) == ("host",)]
        hosts = {path[1] for path in listed if len(path) > 2}  # noqa: PLR2004
        found = [leaf for leaf in leaves if leaf.text in hosts and is_host_name(leaf)]
    if not found:
        # A host name is often repeated, for example in a tag and in a field. Names of metrics
        # rarely contain digits.
        texts = Counter(leaf.text for leaf in leaves if is_host_name(leaf))
        repeated = [text for text in texts if texts[text] > 1 and any(map(str.isdigit, text))]
        found = [leaf for leaf in leaves if [leaf.text] == repeated and is_host_name(leaf)]
        found = [leaf for leaf in found if leaf.own_words[-1] not in _KIND_WORDS]
    if not found:
        # The items of a list are often named after hosts.
        found = [leaf for leaf in leaves if _is_titled_host(leaf) and leaf.path not in taken]
    if not found and not any(leaf.is_link for leaf in leaves):
        # In messages about URLs, the agent is only the location that runs the check.
        found = [
            leaf
            for leaf in leaves
            if leaf.is_top_level and leaf.own_words == ("agent",) and is_host(leaf)
        ]
    if not found:
        return None
    found = [leaf for leaf in found if leaf.object_word not in AREA_WORDS] or found
    leaf = min(found, key=lambda each: each.depth)
    is_only = all(each is leaf or each.depth > leaf.depth for each in found)
    return FieldMatch(
        leaf=leaf,
        confidence=Confidence.LIKELY if is_only and leaf.words != ("name",) else Confidence.UNSURE,
        reason=f"{format_path(leaf.path)} names {'what is affected' if affected else 'a thing'}",
        is_affected=True,
    )


def _is_titled_host(leaf: Leaf) -> bool:
    """Return whether a value is the name or the title of a list's item, and a host name."""
    is_item = len(leaf.path) > 1 and isinstance(leaf.path[-2], int)
    return is_item and leaf.own_words in (("name",), ("title",)) and is_host_name(leaf)


def _is_resource_name(leaf: Leaf) -> bool:
    """Return whether a value is a name in an object for resources, such as `resource.site_name`."""
    is_name = leaf.own_words[-1:] == ("name",) and len(leaf.own_words) > 1
    owners = {word for key in leaf.path[:-1] for word in split_words(str(key))}
    return is_name and not ENTITY_WORDS.isdisjoint(owners) and is_host(leaf)


def _is_object_label(leaf: Leaf) -> bool:
    """Return whether a value is the label of an object, unlike one of the labels of an alert."""
    is_label = leaf.path[-1:] == ("label",) and len(leaf.path) > 1
    return is_label and leaf.is_word and not find_state(leaf.text)
