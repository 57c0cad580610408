"""Finds the value in a payload that best fits a field of an alert.

The words of a key are compared with the phrases for the field, which are ordered from best to
worst. Each level of nesting and each additional word make a value less likely.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from domain.alerts.parsing.mapping import AlertField
from domain.alerts.parsing.mapping_rules import normalize_word
from domain.alerts.parsing.payload_paths import PayloadPath, format_path
from domain.alerts.recognition.key_splitting import parse_word_set, split_words
from domain.alerts.recognition.leaves import GENERIC_WORDS, Leaf
from domain.alerts.recognition.object_values import names_part
from domain.alerts.recognition.severity_values import (
    KIND_WORDS,
    NO_VALUES,
    is_cvss_score,
    is_severity,
    is_severity_state,
    is_severity_word,
)
from domain.alerts.recognition.state_words import (
    FAILURE_WORDS,
    STATE_WORDS,
    is_plain_state,
)


class Confidence(StrEnum):
    """The certainty of a part of a proposal. Users should check parts that are unsure."""

    SURE = "sure"
    LIKELY = "likely"
    UNSURE = "unsure"


@dataclass(frozen=True, kw_only=True)
class FieldCriteria:
    """Criteria for a field's value: phrases for its key, and a function that checks the value."""

    #: Phrases that the words in a path can end with, best first.
    phrases: str
    #: Words that must be a whole key at the top level, because they are too general elsewhere.
    exact: str = ""
    fits: Callable[[Leaf], bool]
    #: True if the word `name` can follow the phrases, as in `host name`.
    is_name: bool = False


@dataclass(frozen=True, kw_only=True)
class FieldMatch:
    """A value that was found for a field, and the reason for the choice."""

    leaf: Leaf
    confidence: Confidence
    reason: str
    #: True if the value is the affected object.
    is_affected: bool = False


#: Phrases for a title if no other value fits, best first.
_FALLBACK_TITLES = (
    "alert type|alarm type|problem type|issue type|issue|problem|friendly name|metric name|metric",
    "finding category|issue category|problem category|alert category|event category",
    "display name|target name|name|label",
    "cause|reason|description|details|content|error message|exception|error|body",
    "event type code|event type|type|event|context|headline text|state|status",
    "rule id|check id|job id|task id|dag id|flow id|pipeline id|workflow id|test id|code",
)

_EVENTS = "event type code|event type|type|event|action|reason"
_DEPTH_COST = 3
_WORD_COST = 2
#: Cost of a value below a key that only groups other values, such as `details`.
_FILLER_COST = 1
_EXACT_COST = 4
_ZONE_BONUS = 0.1
#: Maximum cost of a value with the confidence `LIKELY`.
_LIKELY_COST = 14


#: Words in keys for a link to the monitored host.
LINK_OWNERS = parse_word_set(
    "host target monitor server endpoint site website entity check location"
)
#: Words that are not names.
NO_NAMES = NO_VALUES | parse_word_set("default global main current all any null n/a na undefined")
SCOPE_WORDS = parse_word_set("network board space cluster page project repository region site")
#: Kinds of objects that contain the affected objects of several alerts.
AREA_WORDS = parse_word_set("workspace environment folder location zone dashboard")
#: Kinds of objects whose name is the location of a problem, not its description.
_PLACES = SCOPE_WORDS | AREA_WORDS | parse_word_set("host server node device service app cluster")
#: Kinds of objects that are not affected by a problem although they have names and identifiers.
NOT_AFFECTED = parse_word_set(
    "alert alarm incident issue problem event rule trigger condition policy search query metric "
    "notification feature project version definition error exception template feed cause group "
    "category run build execution environment check test workflow pipeline job plugin source tool "
    "provider vendor suite license cwe advisory vulnerability"
)
_CREATION_WORDS = parse_word_set("created create updated update modified")
_PUBLICATION_WORDS = parse_word_set("publication published disclosure disclosed modification")
#: Words for machines that run the checks of a monitoring tool.
RUNNER_WORDS = parse_word_set("execution runner probe collector poller checker reporter executor")
#: Words for time zones in keys.
_ZONE_WORDS = parse_word_set("utc gmt iso")
_OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
#: Words in the keys of messages about builds.
_RUN_OWNERS = parse_word_set("build pipeline deployment commit")
#: Severity words with little meaning: many tools send them as the default priority.
_UNMARKED_SEVERITIES = parse_word_set("normal default")
#: Words that mark a key as the key of a host.
_HOST_WORDS = parse_word_set("host server target endpoint site website entity node device")
#: Kinds of objects whose links may lead to the monitoring tool or to code.
_OTHER_ENDS = parse_word_set("host server node device repository repo vcs webhook callback")
#: Pattern of addresses of pages, mailboxes and accounts, which do not name a monitored host.
_ADDRESS_SIGN = re.compile("://|@")
_API_LINK = re.compile(r"https?://api\.", re.IGNORECASE)
_HOME_PAGE = re.compile(
    r"https?://[^/?#]+(/+(admin|app|console|dashboard|home|index|login|ui)?\b)*(\.\w+)?[/?#]*",
    re.IGNORECASE,
)
#: Pattern of characters that occur in the names of machines, but not in the names of programs.
_MACHINE_SIGN = re.compile(r"[\d.:-]|localhost")
#: Kinds of objects whose host is the website of a program. Such a host is used only if no other
#: value names a host.
_SITE_WORDS = parse_word_set("application app site portal console")
#: Keys of accounts of the monitoring tool, although such an account may be called “server”.
_ACCOUNT_KEYS = tuple((word,) for word in ("permalink", "organization", "tenant", "workspace"))
#: Kinds of affected objects that are services and not hosts.
SERVICE_THINGS = parse_word_set(
    "application component connection package project repository service system"
)
_HOST_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[.-][A-Za-z0-9]+){1,8}(?::\d+)?")
_ADDRESS = re.compile(r"(https?://\S+|[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}|\d+(\.\d+){3})(:\d+)?/?")
_THING_WORDS = parse_word_set(
    "device rule monitor policy host node service project check trigger repository repo resource "
    "definition "
    "image application"
)
#: Words that follow the kind of an object in a key for the object's name.
_NAMING_WORDS = ("name", "label", "code", "ident", "identifier")
_RULE_NAME_KEYS = tuple((word, "name") for word in ("rule", "alert", "alarm", "check", "policy"))
#: Words in titles for the event that causes a message.
_EVENT_WORDS = parse_word_set(
    "started triggered opened created raised fired begun detected received occurred active open"
)
#: Keys for names of people.
_PERSON_KEYS = tuple((word, "name") for word in ("real", "first", "last", "full", "user", "sur"))
_MAX_TITLE = 150
#: Maximum length of an abbreviation, such as the type of a record.
_MAX_ABBREVIATION = 3
#: Words of comparisons, which do not describe a problem.
_COMPARISON_WORDS = parse_word_set("greater less than or equal to above below over under not")
IDENTIFIER_WORDS = parse_word_set("id uuid guid uid code serial type kind")
#: Kinds of objects that can be named after a state, such as a check named `unreachable`.
_CHECKING_WORDS = parse_word_set("check monitor rule service job test sensor")
#: Kinds of objects whose title or name applies to many alerts.
_CLASSES = parse_word_set("category plugin")
#: Kinds of objects that have a random name, or are named after a commit or a version of the code.
_UNNAMED_THINGS = parse_word_set("run commit branch ref")


def _is_text(leaf: Leaf) -> bool:
    """Return whether a value is human-readable text."""
    is_other = leaf.is_link or leaf.is_uuid or leaf.is_time or leaf.text.isdecimal()
    return bool(leaf.text) and not is_other


def _is_description(leaf: Leaf) -> bool:
    """Return whether a value is a text that does not describe a repository or another scope."""
    is_of_scope = not (SCOPE_WORDS | AREA_WORDS).isdisjoint(leaf.words[-2:-1])
    return _is_text(leaf) and not (is_of_scope or leaf.is_run_reason)


def _is_name(leaf: Leaf) -> bool:
    """Return whether a value is a name or an array of names."""
    if set(leaf.own_words) & {"tag", "label"} or leaf.text.casefold() in NO_NAMES:
        return False
    if isinstance(leaf.value, list):
        return bool(leaf.value) and all(isinstance(each, str) for each in leaf.value)
    return _is_text(leaf) and "\n" not in leaf.text


def _is_service(leaf: Leaf) -> bool:
    is_other = leaf.object_word == "instance" and not _is_product(leaf)
    return _is_name(leaf) and not (leaf.is_resource_path or is_other)


def _is_product(leaf: Leaf) -> bool:
    """Return whether the name of an instance refers to a program and not to a machine."""
    return "instance" in leaf.own_words and not _MACHINE_SIGN.search(leaf.text)


def _is_title(leaf: Leaf) -> bool:
    has_letter = any(each.isalpha() for each in leaf.text)
    is_name = leaf.own_words[-1:] == ("name",) and leaf.object_word in _CHECKING_WORDS
    is_other = (is_plain_state(leaf.text) and not is_name) or leaf.object_word in _UNNAMED_THINGS
    is_other |= leaf.text.casefold() in NO_NAMES and not leaf.is_top_level
    is_other |= leaf.is_generic or leaf.own_words in _PERSON_KEYS
    is_other |= _COMPARISON_WORDS.issuperset(split_words(leaf.text))
    is_other |= leaf.is_resource_path or GENERIC_WORDS.issuperset(split_words(leaf.text))
    is_other |= leaf.object_word in _CLASSES and leaf.own_words[-1:] in (("title",), ("name",))
    return has_letter and _is_text(leaf) and not (is_other or leaf.is_run_reason)


def _can_be_title(leaf: Leaf) -> bool:
    """Return whether a string can be a title and is not an abbreviation or the name of a group."""
    is_short = len(leaf.text) <= _MAX_ABBREVIATION
    return _is_title(leaf) and not (is_short or set(leaf.words) & SCOPE_WORDS)


def is_code(leaf: Leaf) -> bool:
    """Return whether a string is a lowercase word whose key is not a name, title or label."""
    is_named = leaf.own_words[-1:] in (("name",), ("title",), ("label",))
    return leaf.text.islower() and " " not in leaf.text and not is_named


def _is_event(leaf: Leaf) -> bool:
    """Return whether a top-level string describes an event in several words."""
    words = set(split_words(leaf.text))
    is_plain = words <= GENERIC_WORDS | STATE_WORDS.keys()
    return leaf.is_top_level and len(words) > 1 and not is_plain and _is_title(leaf)


def _names_only_event(leaf: Leaf) -> bool:
    """Return whether a title names only the start of an alert, as `Alert Started` does."""
    words = set(split_words(leaf.text))
    return bool(words & GENERIC_WORDS) and words <= GENERIC_WORDS | _EVENT_WORDS


def is_multiword_title(leaf: Leaf) -> bool:
    """Return whether a value is a short text of several words that can be a title."""
    is_short = " " in leaf.text and len(leaf.text) <= _MAX_TITLE and "\n" not in leaf.text
    return is_short and _can_be_title(leaf)


def is_host(leaf: Leaf) -> bool:
    """Return whether a value can be the name or the address of a host."""
    is_place = leaf.own_words[-1:] == ("location",) and not leaf.is_link
    is_listed = any(isinstance(key, int) for key in leaf.path)
    is_place |= is_listed and leaf.object_word in ("agent", "location", "probe")
    is_place |= leaf.belongs_to_run_part or not RUNNER_WORDS.isdisjoint(leaf.words[-2:])
    is_place |= leaf.is_generic or _is_product(leaf)
    is_pattern = "*" in leaf.text
    if is_place or names_part(leaf) or is_pattern or leaf.text.casefold() in NO_NAMES | KIND_WORDS:
        return False
    return _is_name(leaf) or (leaf.is_link and bool(set(leaf.words) & LINK_OWNERS))


def _is_start_time(leaf: Leaf) -> bool:
    """Return whether a value is a time of the alert, not the creation time of a device or rule."""
    is_creation = bool(set(leaf.own_words) & _CREATION_WORDS)
    is_other = bool(set(leaf.own_words) & _PUBLICATION_WORDS)
    is_other |= is_creation and bool(set(leaf.words) & _THING_WORDS)
    return leaf.past_time is not None and not is_other


def _is_page_link(leaf: Leaf) -> bool:
    """Return whether a value is a link to a page other than the home page of a tool."""
    return leaf.is_link and not _HOME_PAGE.fullmatch(leaf.text)


def is_named_state(leaf: Leaf) -> bool:
    """Return whether a state describes a problem in several words, such as `LIMIT_REACHED`."""
    words = set(split_words(leaf.text))
    is_plain = words <= GENERIC_WORDS | _EVENT_WORDS | STATE_WORDS.keys()
    return len(words) > 1 and not is_plain and _is_title(leaf)


_NAMED_STATES = FieldCriteria(phrases="event|state|status", fits=is_named_state)

#: Kinds of values by field, in the order in which values are chosen for the fields.
FIELD_KINDS: Mapping[AlertField, FieldCriteria] = {
    AlertField.SEVERITY: FieldCriteria(
        phrases="severity|severity level|priority|prio|urgency|criticality|level|importance|impact|"
        "alert level|log level|alert severity|severity name|severity label|priority name|"
        "risk|risk level|threat level|sev",
        fits=is_severity,
    ),
    AlertField.HOSTS: FieldCriteria(
        phrases="host|fqdn|node|instance|server|machine|device|impacted entity|affected entity|"
        "managed entity|entity|pod|target|entity source|resource arn|resource|monitor url|"
        "monitor address|site url|website url|target url|"
        "host name and port|check url|endpoint url|ip address|address|ip|"
        "vm|virtual machine|item name|object name|originator|agent name|ap|dataset|database|"
        "table name|switch|volume|bucket|queue|domain|location|dst ip|ip dst|src ip|srcip|"
        "endpoint|asset|station|terminal|equipment|appliance|gateway|router|sensor|"
        "ident|entity id|device id|serial|serial number|instance id|host id|node id|server id|"
        "resource id|arn|crn|urn|server url|host url",
        is_name=True,
        fits=is_host,
    ),
    AlertField.TITLE: FieldCriteria(
        phrases="title|alert title|incident title|incident name|alert name|summary|subject|"
        "headline|control name|rule name|check name|monitor name|alert definition name|"
        "problem title|problem name|trigger name|condition name|event name|alarm name|"
        "issue title|issue name|fault name|finding title|"
        "finding name|detection name|search name|policy name|test name|"
        "job name|task name|workflow name|"
        "pipeline name|event title|service description|service desc|short message|message|msg|"
        "check|alarm|alert|monitor|rule|text",
        exact="name label",
        fits=_is_title,
    ),
    AlertField.DESCRIPTION: FieldCriteria(
        phrases="description|long description|details|detail|long message|message|body|output|"
        "plugin output|reason|summary|msg|text|explanation|full message|error message|error|info|"
        "note|comment",
        fits=_is_description,
    ),
    AlertField.START_TIME: FieldCriteria(
        phrases="start time|started at|start at|started|fired at|triggered at|opened at|"
        "created at|occurred at|down at|start|since|first seen|created|event time|timestamp|"
        "time stamp|down since|"
        "event at|alert time|date time|time|date",
        fits=_is_start_time,
    ),
    AlertField.END_TIME: FieldCriteria(
        phrases="end time|ended at|end at|resolved at|recovered at|closed at|cleared at|"
        "resolved time|closed time|end|ended|recovered|recover time|recovery time|recover at|"
        "cleared|clear time|clear at|up at|resolved|resolution time|deactivated at|deactivated",
        fits=lambda leaf: leaf.is_time or isinstance(leaf.value, str | None),
    ),
    AlertField.SERVICE: FieldCriteria(
        phrases="service|app|application|component|job|system|project|repository|repo|"
        "namespace|cluster|instance|process key|process",
        is_name=True,
        fits=_is_service,
    ),
    AlertField.MONITORING_TOOL: FieldCriteria(
        phrases="monitoring tool|tool|monitoring system", fits=_is_name
    ),
    AlertField.ENVIRONMENT: FieldCriteria(
        phrases="environment|environment name|env|deployment environment",
        exact="stage",
        fits=lambda leaf: bool(leaf.text) and _is_name(leaf),
    ),
    AlertField.RUNBOOK: FieldCriteria(
        phrases="run book|run book url|run book link|playbook|playbook url|playbook link|"
        "documentation url|documentation link|documentation|help url|help link|kb article|"
        "wiki url|wiki link|wiki|doc url|doc link",
        fits=_is_page_link,
    ),
    AlertField.SOURCE_URL: FieldCriteria(
        phrases="permalink|html url|web url|external url|external uri|url|uri|link|href|short link|"
        "console|deep link",
        fits=lambda leaf: _is_page_link(leaf) and _is_problem_link(leaf),
    ),
}
_PROBLEM_OWNERS = parse_word_set(
    "alert alarm event incident issue problem finding external permalink"
)
_OTHER_LINKS = parse_word_set(
    "edit silence mute ack acknowledge snooze unsubscribe api icon image logo picture chart"
)
_PROBLEM_WORDS = parse_word_set(
    "alert alarm incident issue problem finding event action link permalink detail external html "
    "web url uri href console view dashboard short deep result self "
    "build run pipeline job workflow attachment title"
)


def _is_problem_link(leaf: Leaf) -> bool:
    """Return whether a link leads to a problem, and not to an object or to the tool's interface."""
    words, own = set(leaf.words) - _PROBLEM_WORDS, set(leaf.own_words)
    return not words or bool(own & _PROBLEM_OWNERS and not own & _OTHER_LINKS)


def find_field_match(
    field: AlertField, leaves: Iterable[Leaf], taken: Collection[PayloadPath] = ()
) -> FieldMatch | None:
    """Return the value that best fits a field, or None."""
    kind = FIELD_KINDS[field]
    given = list(leaves)
    if field is AlertField.TITLE:
        given = _drop_object_names(given, taken)
    if field is AlertField.SOURCE_URL:
        given = _list_problem_links(given, taken)
    is_for_host = field is AlertField.HOSTS
    accounts = {leaf.path[:-1] for leaf in given if leaf.own_words in _ACCOUNT_KEYS} - {()}
    machines = [
        leaf
        for leaf in given
        if is_for_host
        and _SITE_WORDS.isdisjoint(leaf.words[:-1])
        and leaf.path[:-1] not in accounts
    ]
    best = find_best_leaf(kind, machines, taken) or find_best_leaf(kind, given, taken)
    if best and field is AlertField.TITLE and is_code(best.leaf):
        # A text with several words is better than a code.
        described = replace(kind, phrases=f"{kind.phrases}|description", fits=is_multiword_title)
        top = [leaf for leaf in given if len(leaf.path) == 1]
        better = find_best_leaf(described, top, taken) or find_best_leaf(
            replace(kind, fits=is_multiword_title), given, taken
        )
        return better or best
    if best and field is AlertField.TITLE and _names_only_event(best.leaf):
        described = replace(FIELD_KINDS[AlertField.DESCRIPTION], fits=is_multiword_title)
        better = find_best_leaf(described, given, (*taken, best.leaf.path))
        return replace(better, confidence=Confidence.UNSURE) if better else best
    if is_for_host:
        is_unsure = best is None or best.confidence is Confidence.UNSURE
        best = (_find_address(given, taken) if is_unsure else None) or best
        return best and _prefer_host_name(best, given)
    if best is None and field is AlertField.TITLE:
        best = next(
            filter(
                None,
                (
                    find_best_leaf(FieldCriteria(phrases=phrases, fits=fits), given, taken)
                    for fits in (is_multiword_title, _can_be_title, _is_title)
                    for phrases in _FALLBACK_TITLES
                ),
            ),
            None,
        )
        is_name = best is not None and best.leaf.own_words[-1:] == ("name",)
        if best and is_name and (best.leaf.object_word in _PLACES or best.leaf.depth > 1):
            # The name of an event is better than the name of an object.
            described = FieldCriteria(phrases="description|reason", fits=is_multiword_title)
            best = (
                find_best_leaf(FieldCriteria(phrases=_EVENTS, fits=_is_event), given, taken)
                or find_best_leaf(described, given, taken)
                or find_best_leaf(_NAMED_STATES, given, taken)
                or best
            )
        return best and replace(best, confidence=Confidence.UNSURE)
    return best


def _drop_object_names(leaves: Iterable[Leaf], taken: Collection[PayloadPath]) -> list[Leaf]:
    """Return the values except names of objects, which do not describe the problem."""
    given = list(leaves)
    objects = {leaf.text.casefold() for leaf in given if leaf.path in taken}
    given = [leaf for leaf in given if leaf.text.casefold() not in objects]
    paths = [leaf.path for leaf in given]
    given = [leaf for leaf in given if not is_probable_object_name(leaf, paths)]
    return [leaf for leaf in given if not _is_end_of_full_name(leaf, given)]


def _list_problem_links(leaves: Sequence[Leaf], taken: Collection[PayloadPath]) -> list[Leaf]:
    """Return the links that may lead to the problem.

    A link to a host that the message names leads to the monitored object. A link to an API is only
    used if there is no link to a page.
    """
    texts = (leaf.text for leaf in leaves if not _ADDRESS_SIGN.search(leaf.text))
    names = " ".join(texts).casefold()
    links = [leaf for leaf in leaves if leaf.is_link]
    links = [leaf for leaf in links if leaf.text.split("/")[2].casefold() not in names]
    pages = [leaf for leaf in links if not _API_LINK.match(leaf.text)]
    kind = FIELD_KINDS[AlertField.SOURCE_URL]
    return pages if find_best_leaf(kind, pages, taken) else links


def _prefer_host_name(found: FieldMatch, leaves: Iterable[Leaf]) -> FieldMatch:
    """Return the name of a host instead of its identifier, if the payload contains the name."""
    leaf = found.leaf
    is_path = leaf.text.count("/") > 1 and not leaf.is_link
    if leaf.own_words[-1:] in (("id",), ("serial",)) and len(leaf.path) > 1:
        beside = (each for each in leaves if each.path[:-1] == leaf.path[:-1] and is_host(each))
        named = (each for each in beside if each.own_words in (("name",), ("display", "name")))
        return replace(found, leaf=next(named, leaf))
    return replace(found, confidence=Confidence.UNSURE) if leaf.is_uuid or is_path else found


def _find_address(leaves: Iterable[Leaf], taken: Collection[PayloadPath]) -> FieldMatch | None:
    """Return the least nested address whose key contains a word for hosts, or None."""
    found = [
        leaf
        for leaf in leaves
        if not (_HOST_WORDS.isdisjoint(leaf.words[-3:]) or leaf.describes_actor_or_past)
        and not (leaf.is_link and set(leaf.words) & _OTHER_ENDS)
        and leaf.path not in taken
        and is_host(leaf)
        and all(_ADDRESS.fullmatch(str(each)) for each in _list_values(leaf.value))
    ]
    if not found:
        return None
    leaf = min(found, key=lambda each: each.depth)
    reason = f"“{leaf.path[-1]}” contains an address"
    return FieldMatch(leaf=leaf, confidence=Confidence.LIKELY, reason=reason)


def _list_values(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def is_host_name(leaf: Leaf) -> bool:
    """Return whether a string looks like a host name, and its key does not name a problem."""
    is_other = leaf.object_word in NOT_AFFECTED or set(leaf.own_words) & IDENTIFIER_WORDS
    return bool(_HOST_NAME.fullmatch(leaf.text)) and not (is_other or leaf.is_time)


def is_probable_object_name(leaf: Leaf, paths: Iterable[PayloadPath]) -> bool:
    """Return whether a plain name probably belongs to an object.

    Another key in the same object must name the rule.
    """
    is_plain = leaf.own_words == ("name",) and not set(leaf.words[:-1]) - KIND_WORDS
    if not is_plain or " " in leaf.text or not is_host(leaf):
        return False
    beside = (path for path in paths if path[:-1] == leaf.path[:-1])
    return any(split_words(str(path[-1])) in _RULE_NAME_KEYS for path in beside)


def _is_end_of_full_name(leaf: Leaf, leaves: Iterable[Leaf]) -> bool:
    """Return whether a plain name is the last part of a repository's or project's full name."""
    ends = (each.text for each in leaves if each.object_word in SCOPE_WORDS)
    return leaf.words == ("name",) and any(each.endswith(f"/{leaf.text}") for each in ends)


def find_best_leaf(
    kind: FieldCriteria, leaves: Iterable[Leaf], taken: Collection[PayloadPath]
) -> FieldMatch | None:
    """Return the value that best fits the criteria, except for taken paths, or None."""
    found = [
        (cost + _FILLER_COST * (len(leaf.path) - leaf.wrappers > 1), position, leaf)
        for position, leaf in enumerate(leaves)
        if leaf.path not in taken
        and kind.fits(leaf)
        and (cost := _compute_cost(leaf, kind)) is not None
    ]
    if not found:
        return None
    cost, _, leaf = min(found, key=lambda each: each[:2])
    key = leaf.path[-1]
    if cost <= _LIKELY_COST:
        return FieldMatch(leaf=leaf, confidence=Confidence.LIKELY, reason=f"the key is “{key}”")
    return FieldMatch(
        leaf=leaf, confidence=Confidence.UNSURE, reason=f"the nested key “{key}” fits best"
    )


def _compute_cost(leaf: Leaf, kind: FieldCriteria) -> float | None:
    """Return the cost of a key for a field, or None if the key does not fit.

    The key with the lowest cost fits best.
    """
    if leaf.describes_actor_or_past:
        return None
    costs = []
    is_named = kind.is_name and len(leaf.words) > 1 and leaf.words[-1] in _NAMING_WORDS
    words = leaf.words[:-1] if is_named else leaf.words
    own, bonus = set(leaf.own_words), 0.0
    if leaf.is_time and (own & _ZONE_WORDS or _OFFSET.search(leaf.text)):
        # A time with a time zone is preferred.
        words, own = tuple(each for each in words if each not in _ZONE_WORDS), own - _ZONE_WORDS
        bonus = _ZONE_BONUS
    for rank, phrase in enumerate(kind.phrases.split("|")):
        wanted = tuple(phrase.split())
        if wanted in (words[-len(wanted) :], leaf.words[-len(wanted) :]):
            more = len(own - set(wanted) - {"name", "display", "friendly"})
            costs.append(rank / 4 + _DEPTH_COST * leaf.depth + _WORD_COST * more - bonus)
    if leaf.is_top_level and leaf.own_words in {(each,) for each in kind.exact.split()}:
        costs.append(_EXACT_COST)
    return min(costs, default=None)


def propose_severity_leaf(leaves: Sequence[Leaf]) -> FieldMatch | None:
    """Return the value of a severity key, a state that is also a severity, or a CVSS score."""
    top = [leaf for leaf in leaves if leaf.words == ("severity",) and leaf.is_word]
    given = [leaf for leaf in top if is_severity(leaf)] or leaves
    found = find_field_match(AlertField.SEVERITY, filter(is_severity_word, given))
    if found and normalize_word(found.leaf.text) not in _UNMARKED_SEVERITIES:
        # The priority of a build is its position in a queue.
        is_queue = found.leaf.own_words == ("priority",) and any(
            not _RUN_OWNERS.isdisjoint(leaf.own_words) for leaf in leaves
        )
        return replace(found, confidence=Confidence.UNSURE) if is_queue else found
    for leaf in filter(is_severity_state, given):
        if found is None and "type" in leaf.own_words and leaf.text.casefold() in FAILURE_WORDS:
            continue
        reason = f"{leaf.text} is a severity"
        return FieldMatch(leaf=leaf, confidence=Confidence.LIKELY, reason=reason)
    found = find_field_match(AlertField.SEVERITY, given)
    named = (leaf for leaf in given if "severity" in leaf.own_words and is_severity(leaf))
    if found is None and (graded := next(filter(is_severity_word, named), None)):
        reason = f"the key “{graded.path[-1]}” contains the word severity"
        return FieldMatch(leaf=graded, confidence=Confidence.LIKELY, reason=reason)
    scores = filter(is_cvss_score, leaves)
    if found is None and (score := max(scores, key=_get_cvss_version, default=None)):
        reason = f"{format_path(score.path)} is a CVSS score"
        return FieldMatch(leaf=score, confidence=Confidence.LIKELY, reason=reason)
    return found and replace(found, confidence=Confidence.UNSURE)


def _get_cvss_version(leaf: Leaf) -> int:
    return max((int(word) for word in leaf.own_words if word.isdecimal()), default=0)
