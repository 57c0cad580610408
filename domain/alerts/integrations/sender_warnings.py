"""Finds problems with the deliveries of an integration, and proposes changed mappings.

Only the latest stored deliveries are read. Each proposed mapping is first tried on these deliveries
(`domain.alerts.integrations.stored_reports`).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import takewhile
from typing import Annotated

from pydantic import Field

from domain.access.actions import read_action
from domain.access.actor import UnitOfWork
from domain.alerts.deliveries import (
    MIN_REJECTED_STATUS,
    DeliveryProblems,
    find_delivery_problems,
    find_recent_delivery_sizes,
)
from domain.alerts.formats.base import WRONG_FORMAT_PREFIX, ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.integrations import (
    can_customize_integrations,
    get_receiving_integration,
)
from domain.alerts.integrations.mapping_types import MappingFix, ReportCounts
from domain.alerts.integrations.rejections import MIN_REJECTIONS, TURNED_OFF_STATUS
from domain.alerts.integrations.samples import build_mapping, format_sample, parse_sample
from domain.alerts.integrations.setup_progress import SetupAttempt, get_setup_progress
from domain.alerts.integrations.stored_reports import (
    ParsedReport,
    StoredBody,
    StoredMessage,
    count_reports,
    find_stored_bodies,
    read_reports,
)
from domain.alerts.integrations.types import IntegrationTypeName, IntegrationView
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.mapping_rules import MAX_JOINED_VALUES, MAX_RULES_PER_KIND, ValueJoin
from domain.alerts.parsing.payload_paths import find_value, format_path
from domain.alerts.parsing.severity import find_unknown_words
from domain.alerts.parsing.text_conversion import format_excerpt, is_blank
from domain.alerts.recognition.known_tools import propose_mapping
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.questions import propose_word_severity
from domain.core.errors import InvalidError
from domain.core.labeled_enums import LabeledEnum
from domain.core.types.base import Resource, Time, build_choices_schema
from domain.core.types.pagination import ListPage, OffsetQuery
from domain.projects.views import ProjectView

#: Minimum number of repeats, and minimum number of alerts without a recovery, for a warning.
_MIN_REPEATS, _MIN_OPEN_ALERTS = 2, 3
#: Period without a recovery after which a sender probably sends no recoveries at all.
_MIN_PERIOD_WITHOUT_RECOVERY = timedelta(days=1)
#: Maximum number of recoveries that are compared with problems, and maximum number of proposed
#: severity words.
_MAX_COMPARED_RECOVERIES, _MAX_WORDS = 20, 20


class WarningKind(LabeledEnum):
    """Kinds of problems with the deliveries of an integration, most important first."""

    ONLY_REJECTED = "only_rejected", "All requests are rejected, so they open no alerts"
    SHARED_IDENTITY = "shared_identity", "Different hosts share an alert"
    REPEATS = "repeats_open_alerts", "Repeats open new alerts"
    NEVER_RESOLVED = "never_resolved", "Nothing resolves these alerts"
    UNKNOWN_SEVERITY = "unknown_severity", "Severity words are not known, so alerts are critical"
    WRONG_FORMAT = "wrong_format", "Deliveries have the format of another integration type"
    RATE_LIMITED = "rate_limited", "Deliveries exceeded the rate limit of this integration"
    OMITTED_ALERTS = "omitted_alerts", "Senders left out alerts"


class SenderWarning(Resource):
    """A problem with the deliveries of an integration."""

    kind: Annotated[str, build_choices_schema(*WarningKind)]
    details: str = Field(
        description=(
            "Description of the observed requests or messages, and of the change that is needed."
        )
    )
    count: int = Field(description="Number of affected reports, requests, alerts or words.")
    last_at: Time | None = Field(
        default=None, description="Time of the last occurrence. Null if unknown."
    )
    right_type: IntegrationTypeName | None = Field(
        default=None, description="Integration type that can read the deliveries. Null if unknown."
    )
    severity_words: dict[str, str] = Field(
        default={}, description="Proposed severity for each unknown word."
    )
    fix: MappingFix | None = Field(
        default=None,
        description=(
            "Body for `PUT …/mapping` that fixes the problem. Null if no mapping can fix it."
        ),
    )

    @property
    def label(self) -> str:
        """Name of the problem on web pages."""
        return WarningKind(self.kind).label


class WarningQuery(OffsetQuery):
    """Query parameters for a list of an integration's warnings, most important first."""


@read_action("alert_integrations.warnings")
def list_warnings(
    work: UnitOfWork, project: ProjectView, integration_id: int, query: WarningQuery
) -> ListPage[SenderWarning]:
    """List the warnings about the latest deliveries of an alert integration, with their fixes."""
    found = find_warnings(work, get_receiving_integration(work, project, integration_id))
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


def find_warnings(work: UnitOfWork, integration: IntegrationView) -> Sequence[SenderWarning]:
    """Return the warnings about the latest deliveries of an integration, most important first."""
    if not integration.receives_alerts:
        return []
    recent = find_recent_delivery_sizes(integration.id, session=work.session)
    problems = find_delivery_problems(recent, session=work.session)
    reading = work.policy(ParserSettings)
    bodies = find_stored_bodies(recent, session=work.session, reading=reading)
    may_map = integration.type.has_mapping and can_customize_integrations(work)
    log = ParsedDeliveryLog(integration, bodies, reading, may_map=may_map)
    found = [
        *log.list_warnings(),
        log.find_unknown_severity_warning(problems),
        *_list_problem_warnings(integration, problems),
    ]
    has_accepted = any(row.status_code < MIN_REJECTED_STATUS for row in recent)
    if recent and integration.active and (not has_accepted or integration.rejected_since):
        found.append(_find_rejection_warning(work, integration))
    kinds = list(WarningKind)
    return sorted(filter(None, found), key=lambda each: kinds.index(WarningKind(each.kind)))


def _find_rejection_warning(work: UnitOfWork, integration: IntegrationView) -> SenderWarning | None:
    progress = get_setup_progress(integration.id, session=work.session)
    problems = [each for each in progress.problems if each.status_code != TURNED_OFF_STATUS]
    count = sum(1 + each.skipped for each in takewhile(lambda each: each.advice, progress.searched))
    if not problems or count < MIN_REJECTIONS:
        return None
    is_misread = WRONG_FORMAT_PREFIX in (problems[0].reason or "")
    return SenderWarning(
        kind=WarningKind.ONLY_REJECTED,
        details=" ".join(map(_describe_rejection, problems)),
        count=count,
        last_at=problems[0].received_at,
        right_type=_get_other_type(integration) if is_misread else None,
    )


def _describe_rejection(attempt: SetupAttempt) -> str:
    sender = f"{attempt.sender} at {attempt.address}" if attempt.sender else attempt.address
    reason = (attempt.reason or "No reason is stored").removesuffix(".")
    return f"{attempt.status_code} for {sender}: {reason}. {attempt.advice}"


def _get_other_type(integration: IntegrationView) -> str:
    return next(each.name for each in FORMATS if each.name != integration.type.name)


def _list_problem_warnings(
    integration: IntegrationView, problems: DeliveryProblems
) -> Iterator[SenderWarning]:
    misread = f"{integration.format.describe_misdirected_deliveries()}."
    omitted = "Alertmanager's `max_alerts` limits the alerts in a webhook. Set it to 0."
    limited = "They were rejected. Senders such as Alertmanager retry them."
    other = _get_other_type(integration)
    for kind, found, details, right_type in (
        (WarningKind.WRONG_FORMAT, problems.misread, misread, other),
        (WarningKind.RATE_LIMITED, problems.rate_limited, limited, None),
        (WarningKind.OMITTED_ALERTS, problems.left_out, omitted, None),
    ):
        if found.count:
            values = {"details": details, "right_type": right_type, **vars(found)}
            yield SenderWarning.model_validate({"kind": kind, **values})


class ParsedDeliveryLog:
    """The stored deliveries of an integration, read with its current mapping."""

    def __init__(
        self,
        integration: IntegrationView,
        bodies: Sequence[StoredBody],
        reading: ParserSettings,
        *,
        may_map: bool,
    ) -> None:
        """Parse the bodies, which must be in order of arrival."""
        self._integration, self._bodies, self._reading = integration, bodies, reading
        self._reports = self._parse_reports(integration.mapping)
        self._before = count_reports(self._reports)
        self._related = _find_related_messages(self._reports)
        self._may_map = may_map

    def _parse_reports(self, mapping: FieldMapping) -> list[ParsedReport]:
        return read_reports(self._bodies, mapping, reading=self._reading)

    def list_warnings(self) -> Iterator[SenderWarning | None]:
        """Yield the warnings about the alerts that the deliveries open.

        The iterator can also yield None, which means that there is no warning.
        """
        related, before = self._related, self._before
        if related is None:
            return
        proposal, kind = propose_mapping(related), self._integration.type
        if kind.has_mapping and not proposal.format.has_mapping:
            return  # The deliveries have the format of another type.
        has_own_paths = self._integration.mapping.paths != proposal.mapping.paths
        source = self._reports[-1].alert.fingerprint_source
        # Mappings that are declared for known tools group reports as the tools' documentation
        # describes.
        is_declared = kind.has_mapping and proposal.tool and not has_own_paths
        if before.merged_hosts and not is_declared:
            told = f"Reports of different hosts have the same fingerprint. It is made of {source}."
            yield self._build_warning(WarningKind.SHARED_IDENTITY, before.merged_hosts, told)
        if before.repeats >= _MIN_REPEATS and not is_declared:
            told = f"Reports about one problem have different fingerprints, made of {source}."
            yield self._build_warning(WarningKind.REPEATS, before.repeats, told)
        if not before.resolved and self._integration.resolve_after_minutes is None:
            yield self._find_missing_resolution_warning(related, source)

    def _find_missing_resolution_warning(
        self, related: Messages, source: str
    ) -> SenderWarning | None:
        kind, before = WarningKind.NEVER_RESOLVED, self._before
        unread = [r.message for r in self._reports if r.message.recovery_rule and not r.is_over]
        if related.recovery and unread and (rule := unread[-1].recovery_rule):
            said = format_excerpt(find_value(unread[-1].firing, rule.path))
            state = f"{format_path(rule.path)} is {said}"
            told = f"Messages in which {state} are not read as recoveries."
            return self._build_warning(kind, len(unread), told)
        if related.recovery:
            told = "Recoveries have another fingerprint than their alerts. It is made of"
            return self._build_warning(kind, before.unmatched_recoveries, f"{told} {source}.")
        first, last = self._bodies[0].received_at, self._bodies[-1].received_at
        is_early = last - first < _MIN_PERIOD_WITHOUT_RECOVERY
        # Joined integrations may receive the recoveries.
        is_known = before.unmatched_recoveries or self._integration.joined_with
        if is_early or is_known or before.opened < _MIN_OPEN_ALERTS:
            return None
        told = (
            "No recovery has arrived. Turn on messages about recoveries in the sender. If it has "
            "none, set a time after which alerts without a report are resolved."
        )
        return SenderWarning(kind=kind, details=told, count=before.opened, last_at=last)

    def find_unknown_severity_warning(self, problems: DeliveryProblems) -> SenderWarning | None:
        """Return the warning about unknown severity words, or None if all words are known.

        Words in bodies that were not parsed are taken from the delivery log.
        """
        told = [" ".join(report.alert.parse_warnings) for report in self._reports]
        read = {body.id for body in self._bodies}
        known = self._integration.mapping.rules.severity_words
        others = (problems.unknown_words[key] for key in problems.unknown_words if key not in read)
        recorded = [word for words in others for word in words if word not in known]
        words = list(dict.fromkeys([*find_unknown_words(told), *recorded]))[:_MAX_WORDS]
        if not words:
            return None
        return SenderWarning(
            kind=WarningKind.UNKNOWN_SEVERITY,
            details=f"The sender uses {', '.join(map(format_excerpt, words))}. Choose the severity "
            "of each word.",
            count=sum(bool(find_unknown_words([each])) for each in told) + len(recorded),
            severity_words={word: propose_word_severity(word).value for word in words},
        )

    def _build_warning(self, kind: WarningKind, count: int, details: str) -> SenderWarning:
        fix = self._find_fix(kind, self._related) if self._may_map and self._related else None
        if not self._integration.type.has_mapping:
            details += (
                " Send a label for each host."
                if kind is WarningKind.SHARED_IDENTITY
                else " Remove labels that change, or send a fingerprint and recoveries."
            )
        elif not self._may_map:
            details += " Mappings require the Premium or Ultimate tier."
        elif fix is None:
            details += " Choose a fingerprint and a rule in the custom mapping."
        last_at = self._bodies[-1].received_at
        return SenderWarning(kind=kind, details=details, count=count, last_at=last_at, fix=fix)

    def _find_fix(self, kind: WarningKind, related: Messages) -> MappingFix | None:
        """Return the first mapping that solves the problem for the stored deliveries, or None."""
        before = self._before
        for mapping in _propose_mappings(kind, self._integration.mapping, related):
            after = count_reports(self._parse_reports(mapping))
            gain = {
                WarningKind.SHARED_IDENTITY: before.merged_hosts - after.merged_hosts,
                WarningKind.REPEATS: before.repeats - after.repeats,
                WarningKind.NEVER_RESOLVED: after.resolved - before.resolved,
            }[kind]
            sample = self._find_sample(mapping, related)
            if gain > 0 and sample and self._is_safe(mapping, after):
                return MappingFix.model_validate(
                    {
                        "sample": sample,
                        "mapping": mapping.paths,
                        "rules": mapping.rules,
                        "revision": self._integration.mapping_revision,
                        "before": before,
                        "after": after,
                        "deliveries": len(self._bodies),
                    }
                )
        return None

    def _is_safe(self, mapping: FieldMapping, after: ReportCounts) -> bool:
        """Return whether a mapping neither merges hosts nor resolves fewer alerts.

        The mapping must also find the first value of its fingerprint in each message that contains
        any of the values.
        """
        identities = [_read_fingerprint_values(mapping, report.message) for report in self._reports]
        is_whole = all(is_blank(parts) or not is_blank(parts[0]) for parts in identities)
        # Recoveries from other hosts no longer resolve the alert, so fewer resolved alerts are
        # expected.
        min_resolved = self._before.resolved - self._before.merged_hosts
        is_merging = after.merged_hosts > 0 or is_blank([*identities])
        return is_whole and not is_merging and after.resolved >= min_resolved

    def _find_sample(self, mapping: FieldMapping, related: Messages) -> str | None:
        """Return a sample that contains all values that a mapping reads, or None."""
        messages = map(format_sample, (related.firing, *related.other_messages))
        for text in (self._integration.sample, *messages):
            try:
                sample = parse_sample(text or "", nesting_limit=self._reading.nesting_limit)
                one = Messages(firing=sample.payload)
                build_mapping(mapping.paths, one, mapping.rules, self._integration.mapping)
            except InvalidError:
                continue
            return sample.text
        return None


def _read_fingerprint_values(mapping: FieldMapping, message: Messages) -> list[object]:
    """Return the values that a mapping combines into the fingerprint of a message."""
    value = mapping.read_fields(message.firing).get(AlertField.FINGERPRINT)
    return value if isinstance(value, list) else [value]


def _find_related_messages(reports: Sequence[ParsedReport]) -> Messages | None:
    """Return a message about an alert, with its recovery and its repeat if they are stored."""
    problems: list[ParsedReport] = []
    pairs: deque[tuple[ParsedReport, ParsedReport]] = deque(maxlen=_MAX_COMPARED_RECOVERIES)
    for report in reports:
        subject, hosts = report.message.subject, report.hosts
        if not (report.is_over or report.message.recovery_rule):
            problems.append(report)
            continue
        # A recovery resolves the latest of the problems with which it shares the most values.
        same = [r for r in problems[::-1] if r.message.subject & subject and r.hosts == hosts]
        if same:
            pairs.append((max(same, key=lambda r: len(r.message.subject & subject)), report))
    found = [
        replace(_add_repeat_message(problem.message, problems), recovery=over.message.firing)
        for problem, over in reversed(pairs)
    ]
    found = found or [_add_repeat_message(each.message, problems) for each in problems[::-1]]
    return next((each for each in found if each.repeat), found[0] if found else None)


def _add_repeat_message(firing: StoredMessage, problems: Sequence[ParsedReport]) -> Messages:
    """Return a message together with its repeat: another message about the same rule and object.

    The repeat is None if no such message is stored.
    """
    others = (r.message for r in problems if r.message is not firing)
    same = (m.firing for m in others if m.subject and m.subject == firing.subject)
    return Messages(firing=firing.firing, repeat=next(same, None))


def _propose_mappings(
    kind: WarningKind, current: FieldMapping, related: Messages
) -> Iterator[FieldMapping]:
    """Yield mappings that may solve a problem, starting with the smallest change."""
    proposal = propose_mapping(related)
    rules = proposal.mapping.rules
    words = {**rules.severity_words, **current.rules.severity_words}
    guessed = proposal.mapping.with_rules(severity_words=words)
    if proposal.tool and not current.reads_fields:
        yield guessed
    base = current if current.reads_fields else guessed
    if kind is WarningKind.NEVER_RESOLVED and current.reads_fields:
        conditions = dict.fromkeys((*current.rules.resolved_when, *rules.resolved_when))
        resolved = tuple(conditions)[:MAX_RULES_PER_KIND]
        ends = {each: guessed.paths[each] for each in guessed.paths if each == "end_time"}
        base = FieldMapping({**ends, **base.paths}, base.rules).with_rules(
            resolved_when=resolved, is_guess=rules.is_guess
        )
        yield base
    yield _add_host_to_fingerprint(base, related)
    name = AlertField.FINGERPRINT
    paths = {each: base.paths[each] for each in base.paths if each != name}
    joins = {each: base.rules.joins[each] for each in base.rules.joins if each != name}
    paths |= {each: guessed.paths[each] for each in guessed.paths if each == name}
    joins |= {each: rules.joins[each] for each in rules.joins if each == name}
    changed = replace(base.rules, joins=joins, ignored_words=rules.ignored_words)
    yield _add_host_to_fingerprint(FieldMapping(paths, changed), related)


def _add_host_to_fingerprint(mapping: FieldMapping, related: Messages) -> FieldMapping:
    """Return a mapping with the host in its fingerprint, if all messages have the same host."""
    name = AlertField.FINGERPRINT
    join = mapping.rules.joins.get(name, ValueJoin(()))
    leaf = StoredMessage(firing=related.firing).host
    paths = [*mapping.paths.get(AlertField.HOSTS, ()), *([leaf.path] if leaf else [])]
    path = next((each for each in paths if not is_blank(find_value(related.firing, each))), None)
    if path is None:
        return mapping
    value, *others = (find_value(each, path) for each in (related.firing, *related.other_messages))
    is_known = path in (*mapping.paths.get(name, ((name.value,),)), *join.paths)
    is_fixed = all(each == value for each in others)
    if is_known or not is_fixed or len(join.paths) == MAX_JOINED_VALUES:
        return mapping
    joins = {**mapping.rules.joins, name.value: ValueJoin((*join.paths, path))}
    return mapping.with_rules(joins=joins)
