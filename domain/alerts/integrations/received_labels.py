"""Labels that an integration received recently, and proposals for environment and service."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from sqlalchemy import select

from domain.access.actions import question
from domain.access.actor import Work
from domain.alerts.formats.base import Reading
from domain.alerts.integrations.integrations import get_receiver
from domain.alerts.integrations.types import IntegrationView, LabelQuery, ReceivedLabel
from domain.alerts.reading.text import short_text
from domain.core.types.base import Found
from domain.projects.views import ProjectView
from models import Delivery

_MOST_DELIVERIES, _LARGEST_BODY = 50, 2**18
#: Maximum lengths of a label and a shown value in characters, and maximum number of shown values.
_LONGEST_NAME, _LONGEST_VALUE, _MOST_EXAMPLES = 100, 60, 3
#: Usual names of labels for the environment and the service, most specific first.
_ENVIRONMENTS = (
    *("environment", "env", "deployment_environment", "stage", "namespace"),
    *("kubernetes_namespace", "exported_namespace", "cluster", "datacenter", "region"),
)
_SERVICES = (
    *("service_name", "app", "application", "app_kubernetes_io_name", "job", "exported_job"),
    *("deployment", "statefulset", "container", "component"),
)


@question("alert_integrations.labels")
def list_labels(
    work: Work, project: ProjectView, integration_id: int, query: LabelQuery
) -> Found[ReceivedLabel]:
    """List the labels of the latest deliveries.

    Labels that may name the environment or the service come first.
    """
    found = received_labels(work, get_receiver(work, project, integration_id))
    return Found(items=found[query.offset : query.offset + query.size], total=len(found))


def received_labels(work: Work, integration: IntegrationView) -> list[ReceivedLabel]:
    """Return the labels that an integration received recently, proposals first."""
    if not integration.type.has_labels:
        return []
    values: dict[str, dict[str, None]] = {}
    for labels in _labels(work, integration):
        for name, value in labels.items():
            text = short_text(value, _LONGEST_VALUE)
            if text is not None and 0 < len(name) <= _LONGEST_NAME and name.isprintable():
                values.setdefault(name, {})[text] = None
    chosen = {*integration.environment_labels, *integration.service_labels}
    usual = dict.fromkeys(_ENVIRONMENTS, "environment") | dict.fromkeys(_SERVICES, "service")
    proposed = [name for name in usual if name in values and name not in chosen]
    others = sorted(values.keys() - set(proposed))
    return [
        ReceivedLabel(
            name=name,
            values=len(values[name]),
            examples=tuple(values[name])[:_MOST_EXAMPLES],
            proposed_as=usual[name] if name in proposed else None,
        )
        for name in (*proposed, *others)
    ]


def _labels(work: Work, integration: IntegrationView) -> Iterator[Mapping[str, object]]:
    bodies = work.session.scalars(
        select(Delivery.body)
        .where(
            Delivery.integration_id == integration.id,
            Delivery.status_code == HTTPStatus.OK,
            Delivery.is_test.is_(False),
            Delivery.body.is_not(None),
            Delivery.size <= _LARGEST_BODY,
        )
        .order_by(Delivery.id.desc())
        .limit(_MOST_DELIVERIES)
    )
    body_format, reading = integration.format, work.policy(Reading)
    for body in bodies:
        value = body_format.stored_value(body, reading=reading)
        for index in range(len(body_format.items_of(value))):
            found = (each for each in body_format.labels(value, index) if isinstance(each, dict))
            yield {name: each[name] for each in found for name in each}
