"""Lists the values in a payload, and recognizes times, counters, links and identifiers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from domain.alerts.reading.paths import PayloadPath, list_members, list_pairs, parse_inner_object
from domain.alerts.reading.text import is_blank
from domain.alerts.reading.times import is_readable_time
from domain.alerts.recognition.key_words import parse_word_set, split_words

#: Maximum number of values that are examined, and their maximum depth.
_MAX_LEAVES = 500
_MAX_DEPTH = 8
#: Words in keys that only group other values. Such words do not describe a value.
_FILLERS = parse_word_set(
    "metadata data attribute payload detail essential property label tag annotation field body "
    "content info friendly display human readable context custom common extra string odata"
)
#: Words in keys for a property of the object that the preceding words name.
_PROPERTY_WORDS = parse_word_set(
    "name id uuid guid uid label title slug key code type kind identifier serial number url full"
)
#: Kinds of objects that exist once for each run or message.
_RUN_WORDS = parse_word_set(
    "build run execution deploy deployment commit release delivery transaction trace span message "
    "request notification attempt heartbeat batch"
)
_PLACE_WORDS = parse_word_set("region zone location agent probe node")
#: Words for arrays whose items are parts of one run.
_PART_WORDS = parse_word_set("step assertion attempt hit factor screenshot comment condition")
#: Words in keys that wrap the whole message without describing it.
_WRAPPER_WORDS = parse_word_set(
    "alert alarm incident event notification message result object record request response"
)
#: Generic words in names, which only show that the object is a message.
GENERIC_WORDS = parse_word_set(
    "alert alarm incident issue problem event array list notification message webhook new"
)
_ENVELOPE_WORDS = parse_word_set("webhook event data payload body")
#: Keys of the value in a pair, as in `{"key": "host.name", "value": {"stringValue": "web-1"}}`.
_VALUE_KEYS = {("value",), *((each, "value") for each in ("string", "int", "double", "array"))}
_TIME_WORDS = parse_word_set("at time date timestamp stamp datetime when since until on utc")
_MOMENT_WORDS = parse_word_set(
    "started start fired triggered opened created occurred updated received issued executed "
    "ended end resolved closed seen stamp timestamp ok"
)
_COUNTER_WORDS = parse_word_set(
    "count counter number num total duration elapsed occurrence attempt retry sequence seq offset "
    "index size length hit match interval ago age percent percentage ratio watermark version "
    "revision value metric threshold latency rate uptime downtime frequency"
)
#: Words for people and accounts. Their names, states and identifiers do not describe the alert.
_OWNER_WORDS = parse_word_set(
    "user contact author committer pusher owner assignee recipient team creator requester account "
    "organization org tenant customer channel sender webhook integration client "
    "assigned acknowledged responder actor commit subscription by "
    "driver"
)
#: Words in keys of values that describe the state before the message.
FORMER_WORDS = parse_word_set(
    "previous prev old former last from before original default example sample"
)
#: Words for objects that are machines if they have an address, and words in keys for addresses.
_ADDRESSABLE_WORDS = parse_word_set("client source origin sender")
_ADDRESS_KEYS = tuple((word,) for word in ("address", "ip", "hostname", "fqdn"))
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: Prefixes of resource paths, and the minimum number of slashes in other paths.
_PATH_STARTS = ("//", "urn:", "arn:", "crn:")
_MIN_SLASHES = 3
_LINK = re.compile(r"https?://", re.IGNORECASE)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)|\d\d:\d\d:\d\d")
#: Texts that only consist of placeholders that a sender has not replaced, such as `${host}` or
#: `{HOST.NAME}`, and texts for a missing value.
_NO_VALUE = re.compile(
    r"(?:[^\w${]*(?:\$\{[^}]*\}|\{\{[^}]*\}\}))+\W*|\{[A-Z][\w.]*\}|\$[A-Z_]+\$|%[\w.]+%|<[\w .-]+>"
    r"|n/?a|null|nil|-+|undefined|deprecated",
    re.IGNORECASE,
)
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800  # The years 2000 to 2100 in Unix time.


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A value in a payload that is not an object."""

    path: PayloadPath
    value: object
    #: Words in the key of the value.
    own_words: tuple[str, ...]
    #: Words in all keys of the path, without fillers.
    words: tuple[str, ...]
    #: Number of keys at the beginning of the path that only wrap the whole message.
    wrappers: int = 0

    @property
    def is_top(self) -> bool:
        """True if the value is a field of the message itself."""
        keys = [str(key) for key in self.path[self.wrappers : -1]]
        return all(set(split_words(key)) <= _ENVELOPE_WORDS | {"object", "field"} for key in keys)

    @property
    def depth(self) -> int:
        """Number of keys above the key of the value, not counting keys that only group values."""
        keys = [key for key in self.path[self.wrappers :] if isinstance(key, str)]
        return sum(bool(set(split_words(key)) - _FILLERS) for key in keys[:-1])

    @property
    def is_of_run(self) -> bool:
        """True if the value belongs to one run or one message of a tool."""
        return self.thing in _RUN_WORDS

    @property
    def is_place_of_run(self) -> bool:
        """True if the value is the location in which one run of a check took place."""
        return self.thing in _PLACE_WORDS and not _RUN_WORDS.isdisjoint(self.words)

    @property
    def is_of_part(self) -> bool:
        """True if the value belongs to a part of a run, such as the first step of a test."""
        return any(
            isinstance(index, int) and not _PART_WORDS.isdisjoint(split_words(str(key)))
            for key, index in pairwise(self.path)
        )

    @property
    def thing(self) -> str:
        """The word for the object that the value belongs to, such as `host` for `host.name`."""
        return next((word for word in reversed(self.words) if word not in _PROPERTY_WORDS), "")

    @property
    def text(self) -> str:
        """The value as a text, or an empty text for numbers, arrays and other values."""
        return self.value.strip() if isinstance(self.value, str) else ""

    @property
    def is_word(self) -> bool:
        """True if the value is a text that does not consist only of digits."""
        return bool(self.text) and not self.text.isdecimal()

    @property
    def is_about_other(self) -> bool:
        """True if the value describes a person, an account, or the state before the message."""
        return bool(set(self.words) & (_OWNER_WORDS | FORMER_WORDS))

    @property
    def is_link(self) -> bool:
        """True if the value is a URL."""
        return bool(_LINK.match(self.text))

    @property
    def is_resource_path(self) -> bool:
        """True if the value is the path or the name of a resource, such as `urn:host:1`."""
        is_path = self.text.startswith(_PATH_STARTS) or self.text.count("/") >= _MIN_SLASHES
        return is_path and " " not in self.text and not self.is_link

    @property
    def is_uuid(self) -> bool:
        """True if the value is a UUID."""
        return bool(_UUID.fullmatch(self.text))

    @property
    def is_counter(self) -> bool:
        """True if the key names a number, and no metric, that changes with each message."""
        is_name = self.text[:1].isalpha() and "metric" in self.own_words
        return bool(set(self.own_words) & _COUNTER_WORDS) and not is_name

    @property
    def is_generic(self) -> bool:
        """True if the value is a generic name for messages, such as `Event Array`."""
        is_plain = self.thing in {"", *_WRAPPER_WORDS}
        return bool(self.text) and is_plain and GENERIC_WORDS.issuperset(split_words(self.text))

    @property
    def is_time(self) -> bool:
        """True if the value is a point in time."""
        words = set(self.own_words)
        number = self.value if type(self.value) in (int, float) else None
        if self.text.isdecimal() and len(self.text) >= 10:  # noqa: PLR2004
            number = int(self.text[:19])
        if number is not None:
            has_time_word = words & (_TIME_WORDS | _MOMENT_WORDS)
            return bool(has_time_word) and _is_unix_time(float(str(number)))
        if not self.text:
            return False
        if _ISO_TIME.search(self.text) and len(self.text) <= 40:  # noqa: PLR2004
            return True
        return bool(words & _TIME_WORDS) and is_readable_time(self.text)

    @property
    def is_scalar(self) -> bool:
        """True if the value is a text, a number or a Boolean."""
        return isinstance(self.value, str | int | float) and not is_blank(self.value)


def _is_unix_time(number: float) -> bool:
    """Return whether a number is a Unix time in seconds, or in milli-, micro- or nanoseconds."""
    return any(_EARLIEST <= number / unit <= _LATEST for unit in (1, 1e3, 1e6, 1e9))


def _drop_fillers(words: tuple[str, ...]) -> list[str]:
    """Return the words of a key without filler words and words for a webhook's envelope."""
    is_envelope = "webhook" in words and len(words) > 1 and set(words) <= _ENVELOPE_WORDS
    return [] if is_envelope else [word for word in words if word not in _FILLERS]


def list_leaves(payload: Mapping[str, object]) -> tuple[Leaf, ...]:
    """Return the values in a payload, in order.

    Only the first object in an array is used.
    """
    found: list[Leaf] = []
    wrappers = _count_wrappers(payload)
    for path, value in _walk((), payload):
        if len(found) == _MAX_LEAVES:
            break
        if is_placeholder(value):
            continue
        keys = [key for key in path if isinstance(key, str)]
        own = split_words(keys[-1])
        if len(path) > wrappers + 1 or not set(own) <= _PROPERTY_WORDS:
            keys = keys[wrappers:] or keys
        while own in _VALUE_KEYS and not set(split_words("".join(keys[-2:-1]))) <= _FILLERS:
            # The parent key is the name of the value.
            keys, own = keys[:-1], split_words(keys[-2])
        words = [word for key in keys for word in _drop_fillers(split_words(key))]
        named = tuple(words) or own
        found.append(Leaf(path=path, value=value, own_words=own, words=named, wrappers=wrappers))
    machines = {leaf.path[:-1] for leaf in found if leaf.own_words in _ADDRESS_KEYS and leaf.text}
    return tuple(_name_machine(leaf) if leaf.path[:-1] in machines else leaf for leaf in found)


def _count_wrappers(payload: object) -> int:
    """Return the number of outermost keys that only wrap the whole message, such as `event`."""
    match payload:
        case dict() if len(payload) == 1:
            ((key, inner),) = payload.items()
            is_wrapper = set(split_words(str(key))) <= _WRAPPER_WORDS | _FILLERS
            return 1 + _count_wrappers(inner) if is_wrapper and isinstance(inner, dict) else 0
        case _:
            return 0


def _name_machine(leaf: Leaf) -> Leaf:
    """Rename the object of a value to `host`, since accounts have no addresses."""
    is_known = len(leaf.path) == 1 or _ADDRESSABLE_WORDS.isdisjoint(split_words(str(leaf.path[-2])))
    words = ("host" if word in _ADDRESSABLE_WORDS else word for word in leaf.words)
    return leaf if is_known else replace(leaf, words=tuple(words))


def is_placeholder(value: object) -> bool:
    """Return whether a text is a placeholder or represents a missing value."""
    return isinstance(value, str) and bool(_NO_VALUE.fullmatch(value.strip()))


def _walk(path: PayloadPath, value: object) -> Iterator[tuple[PayloadPath, object]]:
    children: Sequence[tuple[str | int, object]] = ()
    match value:
        case dict():
            children = list_members(value)
        case [dict() | list(), *_]:
            children = list_pairs(value) or ((0, value[0]),)
        case str() if (inner := parse_inner_object(value)) is not None:
            children = list_members(inner)
        case _:
            yield path, value
            children = list_pairs(value)
    if len(path) < _MAX_DEPTH:
        for segment, child in children:
            yield from _walk((*path, segment), child)
