"""Questions about facts that a proposed mapping needs and that the messages do not contain."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from domain.alerts.parsing.changing_words import remove_changing_words
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping import AlertField
from domain.alerts.parsing.mapping_rules import (
    PayloadCondition,
    is_rule_word,
    normalize_word,
)
from domain.alerts.parsing.payload_paths import PayloadPath, find_value, format_path
from domain.alerts.parsing.severity import (
    propose_severity,
)
from domain.alerts.parsing.text_conversion import convert_to_text, format_excerpt, is_blank
from domain.alerts.parsing.times import parse_end_time
from domain.alerts.recognition.fields import (
    Confidence,
    FieldMatch,
    find_field_match,
    is_host_name,
)
from domain.alerts.recognition.identity import (
    Identity,
    is_identifier,
    is_object,
    list_subject_leaves,
)
from domain.alerts.recognition.identity_words import ID_WORDS, NAME_WORDS, PROBLEM_KEYS, TEXT_KEYS
from domain.alerts.recognition.key_splitting import parse_word_set
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.resolution import Resolution
from domain.alerts.recognition.severity_values import is_cvss_score
from domain.alerts.recognition.state_words import (
    RECOVERY_WORDS,
    find_state,
)
from domain.core.word_joining import join_words

#: Question about messages without a severity.
MISSING_SEVERITY_QUESTION = (
    "Every alert of this tool is critical, because no field of the message is a severity. Choose "
    "another severity if its problems are less severe."
)
#: Name of the questions about the rule that resolves alerts.
RULE_QUESTION = "resolved_when"
#: Names of the questions that have an answer.
QUESTION_NAMES = frozenset({"severity", "fingerprint", "title", "hosts", RULE_QUESTION})
#: Separator of several answers to one question.
ANSWER_SEPARATOR = "\n"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a fact that the messages do not contain."""

    #: Name of the field that the answer changes, RULE_QUESTION, or None if the question has no
    #: answer.
    name: str | None = None
    text: str
    #: True if the answer “yes” keeps the proposal.
    is_confirmation: bool = False
    #: Values that may fit the field better, best first.
    candidates: tuple[Leaf, ...] = ()


#: Words for objects whose names identify the affected object.
_CHECKED_THINGS = parse_word_set(
    "check monitor test job pipeline workflow scenario sensor site project flow dag task component"
)
#: Maximum number of values that are proposed for a field in a question.
_MAX_CANDIDATES = 4
#: Maximum number of characters of a title that are shown in a question.
_MAX_SHOWN_TITLE = 60
#: Maximum number of a rule's words that are shown in a question.
_MAX_SHOWN_WORDS = 4
#: Words whose severity depends on the other words in the tool's scale.
_MIDDLE_SEVERITIES = {"error", "err", "warning", "warn"}
#: Words in keys for accounts. Alerts about sign-ins are about an account.
_ACCOUNT_WORDS = parse_word_set("actor user account target principal subject identity")
#: Keys for labels, which describe an object in many ways.
_LABEL_KEYS = ("labels", "tags", "annotations")
#: Last words of keys whose values describe the message and not an object.
_TYPE_KEYS = (("type",), ("version",))
#: Pattern of the SHA-256 hash of a token, which is not secret.
_HASH = re.compile(r"[0-9a-f]{64}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_SECRET_WORDS = {"secret", "password", "passphrase"}
#: Maximum number of words in the key of an identifier that may belong to the alert, as in `moid`.
_MAX_PLAIN_ID_WORDS = 2
#: Maximum number of messages about an alert in addition to the first.
_MAX_OTHER_MESSAGES = 2
#: Maximum number of words in the name of a host or an object.
_MAX_NAME_WORDS = 3


def propose_word_severity(word: str) -> Severity:
    """Return the probable severity of a sender's word, which is info for a recovery word."""
    named = find_state(word)
    is_over = word in RECOVERY_WORDS or (named is not None and named.word in RECOVERY_WORDS)
    return Severity.INFO if is_over else propose_severity(word)


def list_questions(
    messages: Messages,
    found: Mapping[AlertField, FieldMatch],
    identity: Identity | None,
    resolution: Resolution | None,
    shown: object,
) -> Iterator[Question]:
    """Yield the questions about a proposed mapping.

    `shown` is the title with its appended values.
    """
    yield from _build_field_questions(messages, found, shown)
    if resolution is None and AlertField.END_TIME not in found:
        text = (
            "No value shows whether the alert is over. Paste the message that the tool sends when "
            "the problem is over. If the tool sends none, users resolve these alerts, or you set a "
            "time after which alerts without a report are resolved."
            if messages.recovery is None
            else "No value of the recovery shows that the alert is over, so users have to resolve "
            "these alerts."
        )
        yield Question(name=RULE_QUESTION, text=text)
    elif resolution is not None and resolution.confidence is Confidence.UNSURE:
        text = f"Is the alert over if {_shorten_rule(resolution.rule)}?"
        if messages.recovery is None:
            text += " Paste the message about the recovery to check it."
        yield Question(name=RULE_QUESTION, text=text, is_confirmation=True)
    # Without a rule, a value under the product's own name for the end time resolves the alert.
    end = parse_end_time(messages.firing.get(AlertField.END_TIME), name="")
    if resolution is None and (end.time or end.warning):
        text = (
            "Is end_time the end of the problem? It has a value although the problem is not over, "
            "so it can resolve alerts immediately."
        )
        yield Question(name=AlertField.END_TIME, text=text)
    yield from _build_identity_questions(messages, identity, found)


def _shorten_rule(rule: PayloadCondition) -> str:
    words = rule.words[:_MAX_SHOWN_WORDS]
    more = " …" if len(rule.words) > len(words) else ""
    return f"{replace(rule, words=words).phrase}{more}"


def _build_field_questions(
    messages: Messages, found: Mapping[AlertField, FieldMatch], shown: object
) -> Iterator[Question]:
    title, severity = found.get(AlertField.TITLE), found.get(AlertField.SEVERITY)
    ask = partial(_build_value_question, messages, found)
    if title is None:
        yield ask(AlertField.TITLE, "No field looks like a title.")
    elif title.confidence is Confidence.UNSURE:
        text = f"Is {_shorten_title(convert_to_text(shown))} a good title?"
        yield ask(AlertField.TITLE, text, is_confirmation=True)
    if severity is None:
        yield Question(name=AlertField.SEVERITY, text=MISSING_SEVERITY_QUESTION)
    elif asked := _build_severity_question(messages, severity):
        yield Question(name=AlertField.SEVERITY, text=asked)
    host = found.get(AlertField.HOSTS)
    is_named = title is not None and title.leaf.object_word in _CHECKED_THINGS
    if host is not None and host.confidence is Confidence.UNSURE:
        text = f"Is {format_excerpt(host.leaf.value)} the affected host or object?"
        yield ask(AlertField.HOSTS, text, is_confirmation=True)
    elif host is None and AlertField.SERVICE not in found and not is_named:
        yield ask(AlertField.HOSTS, "No value is clearly the affected host or service.")
    yield from _build_message_questions(messages, host)


def _build_message_questions(messages: Messages, host: FieldMatch | None) -> Iterator[Question]:
    """Yield the questions about a repeat with another host, and about secrets."""
    other = find_value(messages.repeat, host.leaf.path) if messages.repeat and host else None
    if host is not None and other not in (None, host.leaf.value):
        text = (
            f"{format_path(host.leaf.path)} is {format_excerpt(host.leaf.value)} in the first "
            f"message, and {format_excerpt(other)} in the repeat. Are both messages about the same "
            "problem? If not, paste another message about the first problem as the repeat."
        )
        yield Question(text=text)
    for leaf in messages.leaves:
        if _is_secret(leaf):
            text = (
                f"Is {format_path(leaf.path)} a secret? If so, remove its value before you go on, "
                "and configure the tool not to send it. Everyone who can see the alerts can read "
                "their details."
            )
            yield Question(text=text)


def _shorten_title(text: str) -> str:
    """Return a title in quotes. In a long title, the middle is replaced by an ellipsis."""
    half = _MAX_SHOWN_TITLE // 2
    is_long = len(text) > _MAX_SHOWN_TITLE
    return f"“{text[:half]} … {text[-half:]}”" if is_long else format_excerpt(text)


def _is_secret(leaf: Leaf) -> bool:
    """Return whether a value is probably a secret."""
    own = set(leaf.own_words)
    is_key = bool(own & {"private", "api"}) and "key" in own
    return bool(leaf.text) and (is_key or not own.isdisjoint(_SECRET_WORDS))


def _build_severity_question(messages: Messages, severity: FieldMatch) -> str | None:
    """Return the question about a severity word with an uncertain meaning, or None."""
    if is_cvss_score(severity.leaf):
        return None
    path, value = severity.leaf.path, severity.leaf.value
    given = [find_value(each, path) for each in (messages.firing, *messages.other_messages)]
    words = (normalize_word(each) for each in given if isinstance(each, str | int))
    quoted = join_words(dict.fromkeys(f"“{word}”" for word in words if is_rule_word(word)))
    if normalize_word(value).isdecimal():
        return (
            f"How severe is {quoted}? On some scales 1 is the highest number, and on others the "
            f"lowest. Other numbers of {format_path(path)} are critical until you add severity "
            "words for them."
        )
    if severity.confidence is Confidence.UNSURE:
        return f"How severe is “{value}”? Tools use different scales for {format_path(path)}."
    if (word := normalize_word(value)) in _MIDDLE_SEVERITIES:
        return (
            f"How severe is “{value}”? It opens alerts with {propose_word_severity(word)} "
            "severity. Some tools use it for more severe problems."
        )
    return None


def _build_value_question(
    messages: Messages,
    found: Mapping[AlertField, FieldMatch],
    field: AlertField,
    text: str,
    *,
    is_confirmation: bool = False,
    first: Sequence[Leaf] = (),
) -> Question:
    """Return a question with the values that may fit a field, or else with other short strings.

    The values in `first` come before the others.
    """
    others = (field, AlertField.TITLE, AlertField.SEVERITY)
    taken = {found[each].leaf.path for each in others if each in found}
    is_title = field is AlertField.TITLE
    # The recovery needs no title.
    given = messages.without_recovery.stable_leaves if is_title else messages.stable_leaves
    stable = [leaf for leaf in given if leaf.path not in taken]
    stable = [leaf for leaf in stable if not (leaf.describes_actor_or_past or _is_secret(leaf))]
    stable = [leaf for leaf in stable if not is_blank(leaf.value)]
    leaves = list(first)
    leaves += [leaf for leaf in given if not is_title and _is_mailbox(leaf)]
    if field is AlertField.FINGERPRINT:
        completing = _list_completing_leaves(messages) if is_confirmation else []
        leaves += _list_identifying_leaves(stable, completing)
    else:
        for _ in range(_MAX_CANDIDATES):
            known = {*taken, *(leaf.path for leaf in leaves)}
            best = find_field_match(field, messages.leaves, known)
            leaves += [best.leaf] if best else []
    leaves += [leaf for leaf in stable if not is_title and (is_object(leaf) or is_host_name(leaf))]
    if field is AlertField.HOSTS:
        accounts = [leaf for leaf in messages.stable_leaves if _is_account(leaf)]
        named = [leaf for leaf in stable if leaf.own_words[-1:] == ("name",) and leaf.is_word]
        leaves = [*leaves, *named, *([] if leaves else accounts)]
        leaves += _list_substitute_hosts(found, stable, has_other=bool(leaves))
    words = (
        leaf
        for leaf in stable
        if leaf.is_word
        and leaf.own_words[-1:] not in _TYPE_KEYS
        and not (leaf.is_random or leaf.is_run_reason or leaf.is_measurement or "\n" in leaf.text)
        and not (leaf.is_time or leaf.is_link or find_state(leaf.value))
        and (field is AlertField.TITLE or len(leaf.text.split()) <= _MAX_NAME_WORDS)
    )
    candidates = [*leaves, *words] if is_title or is_confirmation else leaves or list(words)
    if is_title and not candidates:
        scalars = (leaf for leaf in stable if leaf.is_scalar and not leaf.is_time)
        candidates = [leaf for leaf in scalars if not isinstance(leaf.value, bool)]
    return Question(
        name=field, text=text, is_confirmation=is_confirmation, candidates=tuple(candidates)
    )


def _list_identifying_leaves(stable: Sequence[Leaf], completing: Sequence[Leaf]) -> list[Leaf]:
    """Return the names of the rule and the object, the completing values, and then texts."""
    subjects = list_subject_leaves(stable)
    texts = [leaf for leaf in subjects if leaf.own_words[-1:] in TEXT_KEYS]
    return [*(leaf for leaf in subjects if leaf not in texts), *completing, *texts]


def _list_other_names(messages: Messages, identity: Identity) -> list[Leaf]:
    """Return the names and mailboxes that the messages share and that the identity does not cover.

    The identifier of an alert covers all names. Other values cover the names in the same object.
    """
    if identity.is_alert_id:
        return []
    values = {str(find_value(messages.firing, path)).casefold() for path in identity.paths}
    owners = {path[:-1] for path in identity.paths}
    others = [leaf for leaf in messages.stable_leaves if leaf.text.casefold() not in values]
    return [leaf for leaf in others if _is_mailbox(leaf) or _is_other_name(leaf, owners)]


def _is_other_name(leaf: Leaf, owners: Collection[PayloadPath]) -> bool:
    """Return whether a value is the name of an object, except for labels and listed objects."""
    is_label = any(isinstance(key, int) or key in _LABEL_KEYS for key in leaf.path)
    is_name = leaf.own_words[-1:] == ("name",) and leaf.is_word and is_identifier(leaf)
    return is_name and not is_label and leaf.path[:-1] not in owners


def _list_completing_leaves(messages: Messages) -> list[Leaf]:
    """Return the values that can complete a fingerprint, best first.

    Kinds of problems come first, then generated identifiers near the top level of the message, then
    names, and then other identifiers. Kinds that differ in the recovery come last, because with
    them, the recovery resolves no alert.
    """
    found = []
    for leaf in (*filter(is_identifier, messages.stable_leaves), *_list_changed_kinds(messages)):
        own, last = set(leaf.own_words), leaf.own_words[-1:]
        is_changed = leaf not in messages.stable_leaves
        is_kind = _is_problem_kind(leaf) and (is_changed or not find_state(leaf.value))
        is_id = not own.isdisjoint(ID_WORDS)
        is_name = not NAME_WORDS.isdisjoint(last) or (is_id and leaf.is_word and not leaf.is_random)
        is_proven = bool(messages.other_messages) or not leaf.is_random
        is_other = leaf.is_link or leaf.is_counter or not is_proven
        if (is_kind or is_name or is_id) and not is_other:
            is_plain = leaf.is_random and ID_WORDS.issuperset(leaf.own_words[-1:])
            is_of_alert = (
                is_plain and len(leaf.own_words) <= _MAX_PLAIN_ID_WORDS and leaf.depth <= 1
            )
            found.append((is_changed, not is_kind, not is_of_alert, not is_name, leaf.depth, leaf))
    return [leaf for *_, leaf in sorted(found, key=lambda each: each[:-1])]


def _list_changed_kinds(messages: Messages) -> list[Leaf]:
    """Return the kinds of problems that are different in the recovery."""
    kinds = (leaf for leaf in messages.without_recovery.stable_leaves if _is_problem_kind(leaf))
    return [leaf for leaf in kinds if leaf not in messages.stable_leaves]


def _is_problem_kind(leaf: Leaf) -> bool:
    """Return whether a value is the kind of a problem."""
    return leaf.is_word and set(leaf.own_words) in PROBLEM_KEYS


def _list_substitute_hosts(
    found: Mapping[AlertField, FieldMatch], stable: Sequence[Leaf], *, has_other: bool
) -> list[Leaf]:
    """Return the title if it may be the name of an object, or else the links of the message.

    If there are other candidates, only a title whose key ends with `name` is returned.
    """
    title = found.get(AlertField.TITLE)
    if title and has_other:
        return [title.leaf] if title.leaf.own_words[-1:] == ("name",) else []
    is_name = title and len(title.leaf.text.split()) <= _MAX_NAME_WORDS
    if title and is_name and not find_state(title.leaf.value):
        return [title.leaf]
    return [leaf for leaf in stable if leaf.is_link and leaf.is_top_level]


def _is_account(leaf: Leaf) -> bool:
    """Return whether a value names or identifies an account that a message may be about."""
    is_name = bool({"id", "name", "email", "login", "username"} & set(leaf.own_words))
    if leaf.own_words[-1:] == ("token",) and _HASH.fullmatch(leaf.text):
        return True
    return is_name and not _ACCOUNT_WORDS.isdisjoint(leaf.words) and not leaf.is_link


def _is_mailbox(leaf: Leaf) -> bool:
    """Return whether a value is the address of the mailbox that a message may be about."""
    return leaf.own_words in (("recipient",), ("email",)) and bool(_EMAIL.fullmatch(leaf.text))


def _ask_about_values(identity: Identity) -> str:
    """Return the beginning of a question about one or several values."""
    start = "Are the values of" if identity.paths[1:] else "Is the value of"
    return f"{start} {identity.phrase}"


def _describe_text_identity(messages: Messages, identity: Identity) -> str:
    """Return the question about an identity whose texts are compared without changing words."""
    values = (convert_to_text(find_value(messages.firing, path)) for path in identity.paths)
    words = " ".join(remove_changing_words(each, identity.ignored_words) for each in values)
    text = (
        f"No field identifies the alert. Messages are compared by {identity.phrase}, without words "
        f"that change: “{words}”. Do messages with these words always report the same problem, and "
        "never two problems?"
    )
    is_proven = len(messages.other_messages) == _MAX_OTHER_MESSAGES
    return text if is_proven else f"{text} Paste a repeat and the recovery to check it."


def _ask_to_confirm(messages: Messages, identity: Identity) -> str:
    """Return the question about values that may not identify the alert."""
    text = (
        f"Do messages with the same {identity.phrase} always report the same problem, and "
        "never two problems?"
        if messages.other_messages
        else f"{_ask_about_values(identity)} the same in all messages about a problem, and "
        "different for other problems?"
    )
    if changed := _list_changed_kinds(messages):
        path = format_path(changed[0].path)
        text += f" {path} is not compared, because it is different in the recovery."
    if not messages.other_messages:
        text += " Paste another message about the same problem, or its recovery, to check it."
    elif messages.repeat is None:
        text += " If the tool repeats messages while a problem lasts, paste a repeat to check it."
    return text


def _build_identity_questions(
    messages: Messages, identity: Identity | None, found: Mapping[AlertField, FieldMatch]
) -> Iterator[Question]:
    field = AlertField.FINGERPRINT
    is_confirmation = identity is not None and bool(identity.ignored_words)
    paste = "" if messages.repeat else " Paste another message about the same problem."
    if identity is not None and is_confirmation:
        text = _describe_text_identity(messages, identity)
    elif identity is None:
        text = (
            "No value identifies the alert in all of its messages, so each message may open a new "
            f"alert.{paste}"
        )
    elif identity.is_partial:
        text = (
            "No value identifies the alert in all of its messages. The recovery has another "
            f"{identity.phrase}, so it resolves no alert."
        )
    elif identity.may_merge_hosts:
        host = found.get(AlertField.HOSTS)
        field = AlertField.FINGERPRINT if host else AlertField.HOSTS
        is_confirmation = host is not None
        text = (
            f"{format_path(host.leaf.path)} is not in all messages, so the fingerprint cannot "
            f"contain it. {_ask_to_confirm(messages, identity)}"
            if host
            else "No value names the affected host or object. If the rule watches several, they "
            f"share one alert.{paste}"
        )
    elif identity.confidence is Confidence.UNSURE or _list_other_names(messages, identity):
        is_confirmation = True
        text = _ask_to_confirm(messages, identity)
    else:
        return
    names = _list_other_names(messages, identity) if identity and is_confirmation else ()
    yield _build_value_question(
        messages, found, field, text, is_confirmation=is_confirmation, first=names
    )
