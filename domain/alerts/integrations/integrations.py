"""Finds the integrations of a project, and validates their settings."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.names import MAX_DISPLAY_NAME_LENGTH, slugify_name
from domain.alerts.deliveries import MIN_REJECTED_STATUS, get_delivery_outcome
from domain.alerts.formats.base import IntegrationType
from domain.alerts.formats.registry import get_integration_type
from domain.alerts.integrations.types import IntegrationBody, IntegrationView
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, load_mapping
from domain.alerts.parsing.mapping_rules import LABEL_FIELDS, validate_label_names
from domain.core.database.pagination import PageRequest, PageResult, fetch_list_page
from domain.core.errors import InvalidError, NotFoundError
from domain.core.text_links import is_web_url
from domain.core.types.base import get_column_values
from domain.projects.views import ProjectView
from models import Delivery, Integration, Project

#: Maximum length of an API URL, in characters.
MAX_API_URL_LENGTH = 2000
#: Names of the settings that are columns of the integration. `domain.alerts.integrations.monitors`
#: handles the other settings.
_SETTING_NAMES = IntegrationBody.model_fields.keys() - {"joined_with"}


def can_customize_integrations(work: UnitOfWork) -> bool:
    """Return whether the tier allows custom mappings and several integrations of a type."""
    return work.settings.tier != "free"


def get_integration(work: UnitOfWork, project: ProjectView, integration_id: int) -> IntegrationView:
    """Return an integration of the project.

    Raise NotFoundError if no integration has this ID.
    """
    one = _build_project_query(project).where(Integration.id == integration_id)
    row = work.session.execute(one).first()
    if row is None:
        raise _build_not_found_error()
    return _build_view(work, project, row, _find_monitor_ids(project, session=work.session))


def get_receiving_integration(
    work: UnitOfWork, project: ProjectView, integration_id: int
) -> IntegrationView:
    """Return an integration of the project that receives alerts.

    Raise NotFoundError if no integration has this ID, or if it does not receive alerts.
    """
    integration = get_integration(work, project, integration_id)
    if not integration.receives_alerts:
        raise NotFoundError("A link to an on-call tool does not receive alerts.")
    return integration


def list_integrations(work: UnitOfWork, project: ProjectView) -> tuple[IntegrationView, ...]:
    """Return a project's integrations, oldest first."""
    rows = work.session.execute(_build_project_query(project).order_by(Integration.id))
    monitors = _find_monitor_ids(project, session=work.session)
    return tuple(_build_view(work, project, row, monitors) for row in rows)


def list_integrations_page(
    work: UnitOfWork, project: ProjectView, part: PageRequest
) -> PageResult[IntegrationView]:
    """Return a page of a project's integrations."""
    found = fetch_list_page(
        _build_project_query(project), {"id": Integration.id}, part, session=work.session
    )
    monitors = _find_monitor_ids(project, session=work.session)
    return PageResult(
        items=tuple(_build_view(work, project, row, monitors) for row in found.items),
        total=found.total,
        next_cursor=found.next_cursor,
    )


def requires_integration_name(integration: IntegrationView, *, session: Session) -> bool:
    """Return whether an integration needs a name to distinguish it from others of its type."""
    return (
        list_integration_types_in_use(integration.project_id, session=session).count(
            integration.type.name
        )
        > 1
    )


def list_integration_types_in_use(project_id: int, *, session: Session) -> tuple[str, ...]:
    """Return the types of a project's integrations.

    An additional integration of one of these types needs a name.
    """
    return tuple(each.type for each in _find_integrations(project_id, session=session))


def list_joinable_integrations(
    integration: IntegrationView, *, session: Session
) -> list[tuple[int, str]]:
    """Return the IDs and names of integrations that can share their alerts with an integration."""
    return [
        (each.id, each.name)
        for each in _find_integrations(integration.project_id, session=session)
        if each.id != integration.id
        and get_integration_type(each.type).receives
        and integration.receives_alerts
    ]


def lock_integrations(project_id: int, *, session: Session) -> list[Integration]:
    """Lock the integrations of a project against concurrent changes, and return them."""
    # FOR NO KEY UPDATE does not block inserts of alerts, which refer to the project.
    lock = select(Project.id).where(Project.id == project_id).with_for_update(key_share=True)
    session.execute(lock)
    return _find_integrations(project_id, session=session)


def get_integration_row(integration_id: int, *, session: Session) -> Integration:
    """Return the database row of an integration. Only modules of this package may use the row.

    Raise NotFoundError if no integration has this ID.
    """
    row = session.get(Integration, integration_id)
    if row is None:
        raise _build_not_found_error()
    return row


def set_integration_settings(
    integration: Integration, wanted: IntegrationBody, others: Sequence[Integration]
) -> None:
    """Validate the settings of an integration, and apply them to its database row.

    `others` contains the project's other integrations. Raise InvalidError, which names the field,
    if a value is not valid.
    """
    kind = get_integration_type(integration.type)
    is_first = not any(other.type == kind.name for other in others)
    clean = _validate_name(wanted.name, kind, is_first=is_first)
    _check_url(kind, wanted.api_url)
    if wanted.active:
        _check_exclusive(kind, [other for other in others if other.active])
    usual = kind.api_url.default if kind.api_url else None
    # A body for a new integration has additional fields, which are not settings.
    values = {each: getattr(wanted, each) for each in _SETTING_NAMES}
    labels = {name: validate_label_names(values.pop(name), field=name) for name in LABEL_FIELDS}
    for name, value in {**values, "name": clean, "api_url": wanted.api_url or usual}.items():
        setattr(integration, name, value)
    _set_label_names(integration, kind, labels)


def get_integration_settings(integration: Integration) -> dict[str, Any]:
    """Return an integration's current settings, using the field names of a change request."""
    rules = load_mapping(integration.mapping).rules
    labels = {name: getattr(rules, name) for name in LABEL_FIELDS}
    others = _SETTING_NAMES - labels.keys()
    return {**labels, **{name: getattr(integration, name) for name in others}}


def _set_label_names(
    integration: Integration, kind: IntegrationType, labels: dict[str, tuple[str, ...]]
) -> None:
    """Set the environment and service labels, which are stored with the mapping rules.

    Raise InvalidError if the integration type does not support labels.
    """
    mapping = load_mapping(integration.mapping)
    if all(getattr(mapping.rules, name) == chosen for name, chosen in labels.items()):
        return
    if not kind.has_labels:
        message = f"Labels cannot be chosen for the type {kind.label}. Map the fields instead."
        raise InvalidError(message, field=next(name for name in labels if labels[name]))
    integration.mapping = dict(mapping.with_rules(**labels).stored) or None


def _find_integrations(project_id: int, *, session: Session) -> list[Integration]:
    return list(
        session.scalars(
            select(Integration)
            .where(Integration.project_id == project_id)
            .order_by(Integration.id)
            .execution_options(populate_existing=True)
        )
    )


def _validate_name(name: str, kind: IntegrationType, *, is_first: bool) -> str:
    clean = name.strip()
    if len(clean) > MAX_DISPLAY_NAME_LENGTH:
        raise InvalidError(
            f"The name can have at most {MAX_DISPLAY_NAME_LENGTH} characters.", field="name"
        )
    if not clean.isprintable():
        message = "The name must be one line without control characters."
        raise InvalidError(message, field="name")
    if clean:
        return clean
    if not is_first:
        message = f"Enter a name, because this project already has another {kind.label}."
        raise InvalidError(message, field="name")
    return kind.label


def _check_exclusive(kind: IntegrationType, active_others: Sequence[Integration]) -> None:
    if kind.takes_over and active_others:
        message = (
            "No other integration can be active while the link to an on-call tool is active. "
            f'Turn off "{active_others[0].name}" first.'
        )
        raise InvalidError(message, field="active")
    if any(get_integration_type(other.type).takes_over for other in active_others):
        message = "The link to an external on-call tool is active. Turn it off first."
        raise InvalidError(message, field="active")


def _check_url(kind: IntegrationType, url: str | None) -> None:
    if len(url or "") > MAX_API_URL_LENGTH:
        raise InvalidError(
            f"The URL can have at most {MAX_API_URL_LENGTH} characters.", field="api_url"
        )
    if is_web_url(url):
        return
    if kind.api_url and kind.api_url.error_message:
        raise InvalidError(kind.api_url.error_message, field="api_url")
    if url:
        message = "The URL must start with https:// or http:// and contain a host."
        raise InvalidError(message, field="api_url")


def _build_not_found_error() -> NotFoundError:
    return NotFoundError("Integration not found in this project.")


def _build_project_query(project: ProjectView) -> Select[*tuple[Any, ...]]:
    """Return a query for a project's integrations, each with its latest delivery."""
    last = (
        select(func.max(Delivery.id))
        .where(Delivery.integration_id == Integration.id)
        .correlate(Integration)
        .scalar_subquery()
    )
    return (
        select(Integration, Delivery.received_at, Delivery.status_code, Delivery.is_test)
        .outerjoin(Delivery, Delivery.id == last)
        .where(Integration.project_id == project.id)
    )


def _find_monitor_ids(project: ProjectView, *, session: Session) -> Mapping[int, int]:
    """Return the monitor IDs of a project's integrations, by integration ID."""
    rows = session.execute(
        select(Integration.id, Integration.monitor_id)
        .where(Integration.project_id == project.id, Integration.monitor_id.is_not(None))
        .order_by(Integration.id)
    )
    return {row.id: row.monitor_id for row in rows if row.monitor_id is not None}


def _build_view(
    work: UnitOfWork, project: ProjectView, row: Row[*tuple[Any, ...]], monitors: Mapping[int, int]
) -> IntegrationView:
    integration: Integration = row[0]
    mapping = load_mapping(integration.mapping)
    # The worker clears `rejected_since` up to a minute after a delivery was accepted.
    is_accepted = (row.status_code or MIN_REJECTED_STATUS) < MIN_REJECTED_STATUS and not row.is_test
    return IntegrationView(
        **get_column_values(integration, IntegrationView)
        | {"type": get_integration_type(integration.type), "mapping": mapping}
        | {"rejected_since": None if is_accepted else integration.rejected_since}
        | {name: getattr(mapping.rules, name) for name in LABEL_FIELDS},
        joined_with=tuple(
            each
            for each, monitor_id in monitors.items()
            if each != integration.id and monitor_id == integration.monitor_id
        ),
        url=_build_receiving_url(work, project, integration),
        last_delivery_at=row.received_at,
        last_outcome=None if row.status_code is None else get_delivery_outcome(row.status_code),
        has_mapping=mapping.reads_fields
        or (bool(integration.mapping) and mapping is NO_FIELD_MAPPING),
    )


def _build_receiving_url(work: UnitOfWork, project: ProjectView, integration: Integration) -> str:
    """Return the URL that senders post to. Receivers ignore the integration's name in the URL."""
    slug = slugify_name(integration.name) or "alerts"
    path = f"{project.path}/alerts/notify/{slug}/{integration.endpoint_identifier}.json"
    return f"{work.settings.base_url}/{quote(path)}"
