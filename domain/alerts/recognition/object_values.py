"""Recognizes addresses of objects, and values that only look like the name of an object."""

import re

from domain.alerts.recognition.key_splitting import parse_word_set
from domain.alerts.recognition.leaves import Leaf

#: Words in keys for links and for parts of a host whose values can be paths.
_PATH_WORDS = parse_word_set("url link uri volume disk mount mountpoint")
#: Kinds of resources, which some messages contain in place of a resource's name.
_RESOURCE_KINDS = parse_word_set("release build deployment job pipeline app application device")
#: Pattern of machine sizes, such as `small-1x` and `t3.micro`.
_MACHINE_SIZE = re.compile(r"(\w\d\w*\.)?(nano|micro|small|medium|x*large)(-?\d+x)?|\d+xlarge")
#: Pattern of IP addresses.
_IP_ADDRESS = re.compile(r"\d+(\.\d+){3}([:/]\d+)?|[0-9a-f:]*:[0-9a-f:]+(/\d+)?", re.IGNORECASE)


def names_part(leaf: Leaf) -> bool:
    """Return whether a value is a path, a kind of resource, a machine size, or part of a record.

    A path can lead to the monitoring tool or to a volume. The host of a DNS record is relative.
    """
    is_path = leaf.text.startswith("/") and not _PATH_WORDS.isdisjoint(leaf.own_words)
    is_kind = leaf.own_words == ("resource",) and leaf.text in _RESOURCE_KINDS
    is_size = bool(_MACHINE_SIZE.fullmatch(leaf.text))
    return is_path or is_kind or is_size or "record" in leaf.words[:-1]


def is_address(leaf: Leaf) -> bool:
    """Return whether a value is an IP address, possibly with a port or a prefix length."""
    return bool(_IP_ADDRESS.fullmatch(leaf.text))
