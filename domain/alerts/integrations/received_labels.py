"""Labels that an integration received recently, and proposed environment and service labels."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from domain.access.actions import read_action
from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.alerts.integrations.stored_reports import read_stored_bodies
from domain.alerts.integrations.types import IntegrationView, LabelQuery, ReceivedLabel
from domain.alerts.parsing.text_conversion import convert_to_short_text
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from models import Delivery

_MAX_DELIVERIES, _MAX_BODY_BYTES = 50, 256 * 1024
#: Maximum lengths of a label and of an example value, in characters, and maximum number of example
#: values.
_MAX_NAME_LENGTH, _MAX_VALUE_LENGTH, _MAX_EXAMPLES = 100, 60, 3
#: Common names of labels for the environment and the service, most specific first.
_USUAL_ENVIRONMENT_LABELS = (
    *("environment", "env", "deployment_environment", "stage", "namespace"),
    *("kubernetes_namespace", "exported_namespace", "cluster", "datacenter", "region"),
)
_USUAL_SERVICE_LABELS = (
    *("service_name", "app", "application", "app_kubernetes_io_name", "job", "exported_job"),
    *("deployment", "statefulset", "container", "component"),
)


@read_action("alert_integrations.labels")
def list_labels(
    work: UnitOfWork, project: ProjectView, integration_id: int, query: LabelQuery
) -> ListPage[ReceivedLabel]:
    """List the labels in the latest deliveries of an alert integration.

    Labels that may name the environment or the service come first.
    """
    found = find_received_labels(work, get_receiving_integration(work, project, integration_id))
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


def find_received_labels(work: UnitOfWork, integration: IntegrationView) -> list[ReceivedLabel]:
    """Return the labels that an integration received recently, with proposed labels first."""
    if not integration.type.has_labels:
        return []
    values: dict[str, dict[str, None]] = {}
    for labels in _parse_latest_labels(work, integration):
        for name, value in labels.items():
            text = convert_to_short_text(value, _MAX_VALUE_LENGTH)
            if text is not None and 0 < len(name) <= _MAX_NAME_LENGTH and name.isprintable():
                values.setdefault(name, {})[text] = None
    chosen = {*integration.environment_labels, *integration.service_labels}
    usual = dict.fromkeys(_USUAL_ENVIRONMENT_LABELS, "environment") | dict.fromkeys(
        _USUAL_SERVICE_LABELS, "service"
    )
    proposed = [name for name in usual if name in values and name not in chosen]
    others = sorted(values.keys() - set(proposed))
    return [
        ReceivedLabel(
            name=name,
            values=len(values[name]),
            examples=tuple(values[name])[:_MAX_EXAMPLES],
            proposed_as=usual[name] if name in proposed else None,
        )
        for name in (*proposed, *others)
    ]


def _parse_latest_labels(
    work: UnitOfWork, integration: IntegrationView
) -> Iterator[Mapping[str, object]]:
    bodies = read_stored_bodies(
        Delivery.integration_id == integration.id,
        Delivery.status_code == HTTPStatus.OK,
        Delivery.is_test.is_(False),
        Delivery.size <= _MAX_BODY_BYTES,
        limit=_MAX_DELIVERIES,
        session=work.session,
        reading=work.policy(ParserSettings),
    )
    for body in bodies:
        for index in range(len(body.messages)):
            labels = body.format.labels(body.value, index)
            found = (each for each in labels if isinstance(each, dict))
            yield {name: each[name] for each in found for name in each}
