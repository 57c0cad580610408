"""Finds stored deliveries that belong to the same alert as a message."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import select

from domain.access.actions import read_action
from domain.access.actor import UnitOfWork
from domain.alerts.deliveries import MAX_EXAMINED_DELIVERIES, DeliverySize, list_ids_within_size
from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.alerts.integrations.mapping_preview import MessageParser
from domain.alerts.integrations.mapping_types import RelatedDelivery
from domain.alerts.integrations.samples import MAX_SAMPLE_BYTES
from domain.alerts.integrations.stored_reports import StoredBody, read_stored_bodies
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import AlertField
from domain.alerts.parsing.mapping_rules import Operator
from domain.alerts.recognition.fields import Confidence
from domain.alerts.recognition.known_tools import propose_mapping
from domain.alerts.recognition.leaves import list_leaves
from domain.alerts.recognition.messages import Messages
from domain.core.database.pagination import MAX_ID
from domain.core.errors import InvalidError
from domain.projects.views import ProjectView
from models import Delivery

#: Maximum number of deliveries that are compared. Bodies that are too large for a sample are
#: skipped.
_MAX_COMPARED_DELIVERIES = 50
#: Maximum size of all compared bodies together, in bytes.
_MAX_TOTAL_BYTES = 256 * 1024
#: Number of deliveries that are offered as samples.
_MAX_SAMPLES = 5
#: Minimum proportion of keys that two messages with the same structure have in common.
_MIN_SHARED_KEYS = 0.6


@dataclass(frozen=True)
class _MessageComparison:
    """Compares a message about a problem with later messages."""

    payload: Mapping[str, object]
    now: datetime
    reading: ParserSettings

    def find_role(self, later: Mapping[str, object]) -> str | None:
        """Return `repeat` or `recovery` for a later message about the same alert, or None.

        Both messages must have the same structure and identify the same alert. A recovery must also
        have the opposite state or an end time.
        """
        keys, other_keys = self._keys, _list_keys(later)
        if len(keys & other_keys) < _MIN_SHARED_KEYS * len(keys | other_keys):
            return None
        first, second = self._alert, self._parse(Messages(firing=self.payload), later)
        if first is None or second is None or first.ended_at is not None:
            return None
        if first.fingerprint is None or first.fingerprint != second.fingerprint:
            return None
        return self._find_role_of_same_alert(later)

    def _find_role_of_same_alert(self, later: Mapping[str, object]) -> str | None:
        messages = Messages(firing=self.payload, recovery=later)
        proposal = propose_mapping(messages)
        confidence = {each.field: each.confidence for each in proposal.findings}
        rules = proposal.mapping.rules.resolved_when
        is_over = (
            proposal.tool is not None
            or Confidence.SURE in (confidence.get(None), confidence.get(AlertField.END_TIME))
            or any(rule.operator is Operator.CONTAINS_WORD for rule in rules)
        )
        if is_over:
            alert = self._parse(messages, later)
            return "recovery" if alert and alert.ended_at else "repeat"
        return None if confidence.get(None) is Confidence.LIKELY else "repeat"

    @cached_property
    def _keys(self) -> frozenset[tuple[str, ...]]:
        return _list_keys(self.payload)

    @cached_property
    def _alert(self) -> IncomingAlert | None:
        return self._parse(Messages(firing=self.payload), self.payload)

    def _parse(self, messages: Messages, payload: Mapping[str, object]) -> IncomingAlert | None:
        proposal = propose_mapping(messages)
        parser = MessageParser(
            format=proposal.format, mapping=proposal.mapping, now=self.now, reading=self.reading
        )
        try:
            return next(iter(parser.parse(payload).alerts), None)
        except InvalidError:
            return None


def _list_keys(payload: Mapping[str, object]) -> frozenset[tuple[str, ...]]:
    paths = (leaf.path for leaf in list_leaves(payload))
    return frozenset(tuple(key for key in path if isinstance(key, str)) for path in paths)


@read_action("alert_deliveries.show")
def find_related_deliveries(
    work: UnitOfWork,
    project: ProjectView,
    integration_id: int,
    payload: Mapping[str, object] | None,
) -> tuple[RelatedDelivery, ...]:
    """Return the stored deliveries that look like the repeat and the recovery of a message.

    If the message itself is stored, only later deliveries are compared. If no message is given,
    return up to five of the latest deliveries with the role `sample`.
    """
    stored = _list_messages(work, get_receiving_integration(work, project, integration_id).id)
    if payload is None:
        return tuple(_list_initial_messages(work, stored[-_MAX_SAMPLES:]))
    comparison = _build_comparison(work, payload)
    payloads = [each.payload for each in stored]
    start = payloads.index(payload) + 1 if payload in payloads else 0
    found: dict[str, RelatedDelivery] = {}
    for each in stored[start:]:
        role = comparison.find_role(each.payload) if each.payload != payload else None
        if role is not None:
            found.setdefault(role, _build_related_delivery(each, role))
        if role == "recovery":
            break
    return tuple(found.values())


@read_action("alert_deliveries.show")
def find_earlier_message(
    work: UnitOfWork, project: ProjectView, integration_id: int, delivery_id: int
) -> RelatedDelivery | None:
    """Return the most recent delivery that the given delivery seems to repeat or to resolve.

    The `role` in the result is the role of the given delivery. Return None if there is no such
    delivery.
    """
    integration = get_receiving_integration(work, project, integration_id)
    stored = _list_messages(work, integration.id, until=delivery_id)
    if not stored or stored[-1].id != delivery_id:
        return None
    for each in stored[-2::-1]:
        role = _build_comparison(work, each.payload).find_role(stored[-1].payload)
        if role is not None:
            return _build_related_delivery(each, role)
    return None


def _list_initial_messages(
    work: UnitOfWork, stored: Sequence[StoredBody]
) -> Iterator[RelatedDelivery]:
    """Yield the deliveries that are neither a repeat nor a recovery of another delivery."""
    comparisons: list[_MessageComparison] = []
    for each in stored:
        if not any(earlier.find_role(each.payload) for earlier in comparisons):
            yield _build_related_delivery(each, "sample")
        comparisons.append(_build_comparison(work, each.payload))


def _build_comparison(work: UnitOfWork, payload: Mapping[str, object]) -> _MessageComparison:
    return _MessageComparison(payload, now=work.now, reading=work.policy(ParserSettings))


def _build_related_delivery(body: StoredBody, role: str) -> RelatedDelivery:
    return RelatedDelivery(delivery_id=body.id, received_at=body.received_at, role=role)


def _list_messages(work: UnitOfWork, integration_id: int, until: int = MAX_ID) -> list[StoredBody]:
    """Return the messages from senders up to a delivery, oldest first."""
    sizes = work.session.execute(
        select(Delivery.id, Delivery.size, Delivery.status_code)
        .where(
            Delivery.integration_id == integration_id,
            Delivery.id <= until,
            Delivery.is_test.is_(False),
        )
        .order_by(Delivery.id.desc())
        .limit(MAX_EXAMINED_DELIVERIES)
    )
    small = [DeliverySize(*row) for row in sizes if row.size <= MAX_SAMPLE_BYTES]
    bodies = read_stored_bodies(
        Delivery.id.in_(list_ids_within_size(small[:_MAX_COMPARED_DELIVERIES], _MAX_TOTAL_BYTES)),
        limit=_MAX_COMPARED_DELIVERIES,
        session=work.session,
        reading=work.policy(ParserSettings),
    )
    return [body for body in bodies if body.payload][::-1]
