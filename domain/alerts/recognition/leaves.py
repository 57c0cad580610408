"""Lists the values in a payload, and recognizes times, counters, links and identifiers."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from domain.alerts.parsing.payload_paths import (
    PayloadPath,
    list_members,
    list_pairs,
    parse_inner_object,
)
from domain.alerts.parsing.text_conversion import is_blank
from domain.alerts.parsing.times import find_readable_time
from domain.alerts.recognition.key_splitting import parse_word_set, split_words

#: Maximum number of values that are examined, and their maximum depth.
_MAX_LEAVES = 500
_MAX_DEPTH = 8
#: Words in keys that only group other values. Such words do not describe a value.
_FILLERS = parse_word_set(
    "metadata data attribute payload detail essential property label tag annotation field body "
    "content info friendly display human readable context custom common extra string odata list"
)
#: Words in keys for a property of an object. The preceding words name the object.
_PROPERTY_WORDS = parse_word_set(
    "name id uuid guid uid label title slug key code type kind identifier serial number url full"
)
#: Kinds of objects that exist once for each run or message.
_RUN_WORDS = parse_word_set(
    "build run execution deploy deployment commit release delivery transaction trace span message "
    "request notification attempt heartbeat batch session result"
)
#: Words in keys whose value describes why a run was started.
_REASON_WORDS = parse_word_set("reason sentence cause")
_START_WORDS = parse_word_set("trigger triggered build run start started")
_PLACE_WORDS = parse_word_set("region zone location agent probe node")
#: Words for arrays whose items are parts of one run.
_PART_WORDS = parse_word_set("step assertion attempt hit factor screenshot comment")
#: Words in keys that wrap the whole message without describing it.
_WRAPPER_WORDS = parse_word_set(
    "alert alarm incident event notification message result object record request response"
)
#: Generic words in names, which only show that the object is a message.
GENERIC_WORDS = parse_word_set(
    "alert alarm incident issue problem event array list notification message webhook new"
)
_ENVELOPE_WORDS = parse_word_set("webhook event data payload body")
#: Words in keys for the identifier of an affected object, and for plain identifiers and names.
_OBJECT_ID_KEYS = tuple(
    (word, "id") for word in ("target", "resource", "object", "entity", "asset", "host", "server")
)
_PLAIN_KEYS = (("id",), ("name",))
#: Words in keys that can contain the name or the type of an object.
_GENERAL_THINGS = tuple((word,) for word in ("resource", "object", "entity", "target", "asset"))
#: Keys of the value in a pair, as in `{"key": "host.name", "value": {"stringValue": "web-1"}}`.
_VALUE_KEYS = {("value",), *((each, "value") for each in ("string", "int", "double", "array"))}
_TIME_WORDS = parse_word_set("at time date timestamp stamp datetime when since until on utc")
_MOMENT_WORDS = parse_word_set(
    "started start fired triggered opened created occurred updated received issued executed "
    "ended end resolved closed seen stamp timestamp ok"
)
#: Words in keys for times that are usually in the future, and the years of plausible times.
_FUTURE_WORDS = parse_word_set(
    "next expire expired expiry expiration due until deadline valid renewal scheduled"
)
_PLAUSIBLE_YEARS = range(2000, 2090)
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
#: Words for objects that are machines if they have an address or a host name, and keys for
#: addresses.
_ADDRESSABLE_WORDS = parse_word_set("client source origin sender")
_ADDRESS_KEYS = tuple((word,) for word in ("address", "ip", "hostname", "fqdn"))
#: Keys for the hash of a commit. The message in the same object is the commit message.
#: Keys for arrays of sentences, the first of which is used.
_LINE_KEYS = tuple((word,) for word in ("text", "message", "line", "description", "summary"))
_EVENT_KEYS = (("event",), ("type",))
_COMMIT_KEYS = (("commit",), ("commit", "id"), ("commitid",), ("sha",), ("commit", "sha"))
#: Pattern of names such as `files-02` and `db1.example.com`. Customers have other names.
_NUMBERED_HOST = re.compile(r"(?=\D*\d)[A-Za-z][A-Za-z0-9]*(?:[.-][A-Za-z0-9]+)+")
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: Keys for the name under which a tool posts to a chat.
_SENDER_KEYS = (("user", "name"), ("bot", "name"))
#: Prefixes of resource paths, and the minimum number of slashes in other paths.
_PATH_STARTS = ("//", "urn:", "arn:", "crn:")
_MIN_SLASHES = 3
#: Pattern of a number with a unit.
_MEASURE = re.compile(r"-?\d+([.,]\d+)?( ?%| °?[A-Za-z]{1,5}(/[a-z]+)?)")
#: Pattern of sentences that describe the message and not the problem.
_BOILERPLATE = re.compile(r"this is an? (\w+ )*(webhook|notification|message)\b", re.IGNORECASE)
_PARTS = re.compile(r"[^A-Za-z0-9]+")
_LINK = re.compile(r"https?://", re.IGNORECASE)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)|\d\d:\d\d:\d\d")
#: Pattern of texts that consist only of placeholders that a sender has not replaced, such as
#: `${host}` or `{HOST.NAME}`, and of texts for a missing value.
_NO_VALUE = re.compile(
    r"(?:[^\w${]*(?:\$\{[^}]*\}|\{\{[^}]*\}\}))+\W*|\{[A-Z][\w.]*\}|\$[A-Z_]+\$|%[\w.]+%|<[\w .-]+>"
    r"|n/?a|null|nil|-+|undefined|deprecated",
    re.IGNORECASE,
)
#: Beginning of an image or a file that is embedded in a payload.
_DATA_URL = re.compile(r"\s*data:[\w.+-]*/?[\w.+-]*[;,]", re.IGNORECASE)
#: Pattern of the URLs of receivers, including this product's own. Some messages contain the URL.
_RECEIVER_URL = re.compile(
    r"\s*https?://[^?#\s]*/(?:(?:web-?)?hooks?(?:[/?#]|\s*$)|alerts/notify[/.])", re.IGNORECASE
)
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800  # The years 2000 to 2100 in Unix time.


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A value in a payload, such as a string, a number or an array, but not an object."""

    path: PayloadPath
    value: object
    #: Words in the key of the value.
    own_words: tuple[str, ...]
    #: Words in all keys of the path, without fillers.
    words: tuple[str, ...]
    #: Number of keys at the beginning of the path that only wrap the whole message.
    wrappers: int = 0

    @property
    def is_top_level(self) -> bool:
        """True if the value is a field of the message itself."""
        keys = [str(key) for key in self.path[self.wrappers : -1]]
        return all(set(split_words(key)) <= _ENVELOPE_WORDS | {"object", "field"} for key in keys)

    @property
    def depth(self) -> int:
        """Nesting depth of the value, not counting keys that only group other values."""
        keys = [key for key in self.path[self.wrappers :] if isinstance(key, str)]
        return sum(bool(set(split_words(key)) - _FILLERS) for key in keys[:-1])

    @property
    def belongs_to_run(self) -> bool:
        """True if the value belongs to one run or one message of a tool."""
        return self.object_word in _RUN_WORDS

    @property
    def is_run_location(self) -> bool:
        """True if the value is the location in which one run of a check took place."""
        return self.object_word in _PLACE_WORDS and not _RUN_WORDS.isdisjoint(self.words)

    @property
    def is_run_reason(self) -> bool:
        """True if the value describes why a run was started."""
        is_reason = not _REASON_WORDS.isdisjoint(self.own_words)
        return is_reason and not _START_WORDS.isdisjoint(self.own_words)

    @property
    def belongs_to_run_part(self) -> bool:
        """True if the value belongs to a part of a run, such as the first step of a test.

        The objects of a condition do not belong to a part.
        """
        owners = [key for key, index in pairwise(self.path) if isinstance(index, int)]
        words = {word for key in owners for word in split_words(str(key))}
        is_of_condition = len(self.path) > 2 and isinstance(self.path[-2], int)  # noqa: PLR2004
        return not words.isdisjoint(_PART_WORDS) or (is_of_condition and "condition" in words)

    @property
    def object_word(self) -> str:
        """The word for the object that the value belongs to, such as `host` for `host.name`."""
        return next((word for word in reversed(self.words) if word not in _PROPERTY_WORDS), "")

    @property
    def text(self) -> str:
        """The value if it is a string, or an empty string for numbers, arrays and other values."""
        return self.value.strip() if isinstance(self.value, str) else ""

    @property
    def is_word(self) -> bool:
        """True if the value is a string that does not consist only of digits."""
        return bool(self.text) and not self.text.isdecimal()

    @property
    def describes_actor_or_past(self) -> bool:
        """True if the value describes a person, an account or a previous state."""
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
    def is_random(self) -> bool:
        """True if an identifier seems to be generated, unlike a name or a small number."""
        text = self.text.rpartition("/")[2] if self.is_resource_path else str(self.value)
        has_digits = any(each.isdigit() for each in text)
        has_word = any(len(part) > 3 and part.isalpha() for part in _PARTS.split(text))  # noqa: PLR2004
        is_long = len(text) >= 8 and has_digits and " " not in text  # noqa: PLR2004
        return self.is_uuid or (is_long and (self.is_link or not has_word))

    @property
    def is_counter(self) -> bool:
        """True if the key names a number that changes with each message and is not a metric."""
        is_name = self.text[:1].isalpha() and "metric" in self.own_words
        is_name |= self.is_version_name
        return bool(set(self.own_words) & _COUNTER_WORDS) and not is_name

    @property
    def is_version_name(self) -> bool:
        """True if the value is a version name that builds can share, such as `latest`."""
        return self.own_words == ("version",) and self.text.isalpha()

    @property
    def is_count(self) -> bool:
        """True if the key names a number of items, such as `number_of_alerts`."""
        return self.own_words[:2] in (("number", "of"), ("num", "of"))

    @property
    def is_measurement(self) -> bool:
        """True if the value is a number with a unit, such as `8.94 Mbps`."""
        return self.own_words[-1:] != ("name",) and bool(_MEASURE.fullmatch(self.text))

    @property
    def is_generic(self) -> bool:
        """True if the value is a generic name for messages, such as `Event Array`."""
        if _BOILERPLATE.match(self.text):
            return True
        is_plain = self.object_word in {"", *_WRAPPER_WORDS}
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
        return bool(words & _TIME_WORDS) and find_readable_time(self.text) is not None

    @property
    def past_time(self) -> datetime | None:
        """The value as a time, or None if it is not a plausible time in the past.

        A key such as `expires_at` names a time in the future.
        """
        is_past = self.is_time and _FUTURE_WORDS.isdisjoint(self.own_words)
        time = find_readable_time(self.value) if is_past else None
        return time if time and time.year in _PLAUSIBLE_YEARS else None

    @property
    def is_scalar(self) -> bool:
        """True if the value is a string, a number or a Boolean."""
        return isinstance(self.value, str | int | float) and not is_blank(self.value)


def _is_unix_time(number: float) -> bool:
    """Return whether a number is a Unix time in seconds, or in milli-, micro- or nanoseconds."""
    return any(_EARLIEST <= number / unit <= _LATEST for unit in (1, 1e3, 1e6, 1e9))


def _drop_fillers(words: tuple[str, ...]) -> list[str]:
    """Return the words of a key without filler words and words for a webhook's envelope."""
    if words[:2] == ("commit", "status"):  # This is the status of a build.
        words = ("build", *words[1:])
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
        if _is_receiver_url(keys[-1], value):
            continue
        own = split_words(keys[-1])
        if len(path) > wrappers + 1 or not set(own) <= _PROPERTY_WORDS:
            keys = keys[wrappers:] or keys
        while own in _VALUE_KEYS and not set(split_words("".join(keys[-2:-1]))) <= _FILLERS:
            # The parent key contains the name of the value.
            keys, own = keys[:-1], split_words(keys[-2])
        words = [word for key in keys for word in _drop_fillers(split_words(key))]
        named = tuple(words) or own
        if own[-1:] in _EVENT_KEYS:  # The event of a webhook is not a property of the webhook.
            named = tuple(word for word in named if word != "webhook") or own[-1:]
        found.append(Leaf(path=path, value=value, own_words=own, words=named, wrappers=wrappers))
    machines = {leaf.path[:-1] for leaf in found if leaf.own_words in _ADDRESS_KEYS and leaf.text}
    commits = {leaf.path[:-1] for leaf in found if leaf.own_words in _COMMIT_KEYS} - {()}
    found = [
        replace(leaf, words=(*leaf.words[:-1], "commit", *leaf.words[-1:]))
        if leaf.path[:-1] in commits and leaf.own_words in (("message",), ("title",))
        else leaf
        for leaf in found
    ]
    found = [_name_as_host(leaf) if _is_machine(leaf, machines) else leaf for leaf in found]
    found = _simplify_second_ids(_add_object_words(_drop_sender_titles(found)))
    known = {(leaf.path[:-1], leaf.own_words) for leaf in found}
    measured = {leaf.path[:-1] for leaf in found if leaf.path[-1] == "value"}
    return tuple(
        _add_type_word(leaf) if _is_type(leaf, known) or _is_unit(leaf, measured) else leaf
        for leaf in found
    )


def _drop_sender_titles(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return the values except texts that only repeat the sender's name, as in a chat message."""
    names = [leaf for leaf in leaves if leaf.own_words in _SENDER_KEYS and leaf.is_top_level]
    words = {word for leaf in names for word in split_words(leaf.text)} - GENERIC_WORDS
    return [
        leaf
        for leaf in leaves
        if leaf in names
        or words.isdisjoint(split_words(leaf.text))
        or not (words | GENERIC_WORDS).issuperset(split_words(leaf.text))
    ]


def _count_wrappers(payload: object) -> int:
    """Return the number of outermost keys that only wrap the whole message, such as `event`."""
    match payload:
        case dict() if len(payload) == 1:
            ((key, inner),) = payload.items()
            is_wrapper = set(split_words(str(key))) <= _WRAPPER_WORDS | _FILLERS
            return 1 + _count_wrappers(inner) if is_wrapper and isinstance(inner, dict) else 0
        case _:
            return 0


def _is_machine(leaf: Leaf, addressed: Collection[PayloadPath]) -> bool:
    """Return whether a value belongs to a client or sender that is a machine.

    A client or sender with an address is a machine, as is a client with the name of a host.
    `addressed` contains the paths of objects with an address.
    """
    if leaf.words in (("client",), ("client", "name")) and _NUMBERED_HOST.fullmatch(leaf.text):
        return True
    *_, owner = ("", *leaf.path[:-1])
    has_address = leaf.path[:-1] in addressed
    return has_address and not _ADDRESSABLE_WORDS.isdisjoint(split_words(str(owner)))


def _name_as_host(leaf: Leaf) -> Leaf:
    """Return a copy of a leaf in which `host` replaces key words such as `client` and `sender`."""
    words = ("host" if word in _ADDRESSABLE_WORDS else word for word in leaf.words)
    return replace(leaf, words=tuple(words))


def _add_object_words(leaves: list[Leaf]) -> list[Leaf]:
    """Add the type of an object to the words of `id` and `name` keys that belong to the object.

    In `{"target": {"id": 4}, "data": {"id": 4, "name": "web-1"}}`, both IDs are equal, so `web-1`
    is the name of the target.
    """
    things = {
        str(leaf.value): leaf.words[0]
        for leaf in leaves
        if leaf.words in _OBJECT_ID_KEYS and leaf.is_scalar
    }
    plain = {
        leaf.path[:-1]: things[str(leaf.value)]
        for leaf in leaves
        if leaf.words == ("id",) and str(leaf.value) in things
    }
    return [
        replace(leaf, words=(plain[leaf.path[:-1]], *leaf.words))
        if leaf.words in _PLAIN_KEYS and leaf.path[:-1] in plain
        else leaf
        for leaf in leaves
    ]


def _simplify_second_ids(leaves: list[Leaf]) -> list[Leaf]:
    """Name the second identifiers of objects `id`.

    In `{"id": 4, "node_id": "R_4"}`, the second key does not identify a node if several objects
    have both keys with different values.
    """
    plain = {leaf.path[:-1] for leaf in leaves if leaf.own_words == ("id",)}
    second: dict[object, list[Leaf]] = {}
    for leaf in leaves:
        if leaf.own_words[1:] == ("id",):
            second.setdefault(leaf.path[-1], []).append(leaf)
    renamed = {
        leaf.path
        for same in second.values()
        if sum(leaf.path[:-1] in plain for leaf in same) > 1
        and len({str(leaf.value) for leaf in same}) == len(same)
        for leaf in same
    }
    return [
        replace(leaf, own_words=("id",), words=(*leaf.words[:-2], "id"))
        if leaf.path in renamed
        else leaf
        for leaf in leaves
    ]


def _is_type(leaf: Leaf, known: Collection[tuple[PayloadPath, tuple[str, ...]]]) -> bool:
    """Return whether a value is an object's type, since another key contains the object's name."""
    is_general = leaf.own_words in _GENERAL_THINGS
    return is_general and (leaf.path[:-1], (*leaf.own_words, "name")) in known


def _is_unit(leaf: Leaf, measured: Collection[PayloadPath]) -> bool:
    """Return whether a value is the unit of a number, such as `minutes`."""
    return leaf.own_words == ("unit",) and leaf.path[:-1] in measured


def _add_type_word(leaf: Leaf) -> Leaf:
    """Return a copy of a leaf with the word `type` added to the words of its key."""
    return replace(leaf, own_words=(*leaf.own_words, "type"), words=(*leaf.words, "type"))


def is_placeholder(value: object) -> bool:
    """Return whether a value is a placeholder, an embedded file, or a word for a missing value."""
    if not isinstance(value, str):
        return False
    return bool(_NO_VALUE.fullmatch(value.strip()) or _DATA_URL.match(value))


def _is_receiver_url(key: str, value: object) -> bool:
    """Return whether a value is the URL to which the message was sent."""
    is_page = split_words(key)[-1:] == ("documentation",)
    return isinstance(value, str) and bool(_RECEIVER_URL.match(value)) and not is_page


def _walk(path: PayloadPath, value: object) -> Iterator[tuple[PayloadPath, object]]:
    children: Sequence[tuple[str | int, object]] = ()
    match value:
        case dict():
            children = list_members(value)
        case [dict() | list(), *_]:
            children = list_pairs(value) or ((0, value[0]),)
        case str() if (inner := parse_inner_object(value)) is not None:
            children = list_members(inner)
        case [str(), *_] if split_words(str(path[-1])) in _LINE_KEYS and not list_pairs(value):
            yield path, value
            children = ((0, value[0]),)
        case _:
            yield path, value
            children = list_pairs(value)
    if len(path) < _MAX_DEPTH:
        for segment, child in children:
            yield from _walk((*path, segment), child)
