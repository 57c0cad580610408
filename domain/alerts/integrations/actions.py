"""Actions on integrations and their keys."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from sqlalchemy import delete

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.formats.registry import get_integration_type
from domain.alerts.integrations import monitors
from domain.alerts.integrations.integrations import (
    can_customize_integrations,
    get_integration,
    get_integration_row,
    get_integration_settings,
    get_receiving_integration,
    list_integrations_page,
    lock_integrations,
    set_integration_settings,
)
from domain.alerts.integrations.mapping_questions import count_open_questions
from domain.alerts.integrations.types import (
    MAX_KEY_GRACE_PERIOD,
    Integration,
    IntegrationBody,
    IntegrationChange,
    IntegrationCredentials,
    IntegrationKey,
    IntegrationQuery,
    IntegrationSummary,
    IntegrationView,
    IntegrationWithKey,
    KeyQuery,
    KeyRotation,
    NewIntegration,
)
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from domain.core.randomness import generate_random_hex
from domain.core.types.base import Resource
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from models import Integration as IntegrationRow

IntegrationResource = TypeVar("IntegrationResource", bound=Resource)


@read_action("alert_integrations.index", plural="integrations")
def list_integration_summaries(
    work: UnitOfWork, project: ProjectView, query: IntegrationQuery
) -> ListPage[IntegrationSummary]:
    """List the alert integrations of a project."""
    found = list_integrations_page(work, project, query.requested_range)
    hidden = {} if project.can_manage_integrations else {"url": None}
    return ListPage.from_page_result(
        found, lambda view: _build_resource(IntegrationSummary, view, **hidden)
    )


@read_action("alert_integrations.show")
def show_integration(work: UnitOfWork, project: ProjectView, integration_id: int) -> Integration:
    """Show an alert integration.

    Raise NotFoundError if the project has no such integration.
    """
    view = get_integration(work, project, integration_id)
    return _build_resource(Integration, view, open_questions=count_open_questions(work, view))


@action("alert_integrations.create")
def create_integration(
    work: UnitOfWork, project: ProjectView, new: NewIntegration
) -> IntegrationWithKey:
    """Create an alert integration.

    Raise InvalidError, which names the field, if a value is not valid.
    """
    others, kind = (
        lock_integrations(project.id, session=work.session),
        get_integration_type(new.type),
    )
    if not can_customize_integrations(work) and any(other.type == kind.name for other in others):
        message = f"The tier of this instance allows only one {kind.label} in each project."
        raise InvalidError(message, field="type")
    keyring = work.policy(Keyring)
    key = keyring.issue_credential(CredentialType.INTEGRATION_KEY)
    row = IntegrationRow(
        project_id=project.id,
        type=kind.name,
        endpoint_identifier=generate_random_hex(8),
        key_digest=key.digest,
        key_ciphertext=keyring.encrypt(key.clear),
        monitor_id=monitors.generate_monitor_id(),
        monitor_changed_at=work.now,
        created_at=work.now,
    )
    set_integration_settings(row, new, others)
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    monitors.join_integrations(work, row, new.joined_with, others)
    made = get_integration(work, project, row.id)
    record_integration_change(work, project, made, "created")
    return _build_resource(
        IntegrationWithKey, made, key=key.clear if made.receives_alerts else None
    )


@action("alert_integrations.change")
def change_integration(
    work: UnitOfWork, project: ProjectView, integration_id: int, change: IntegrationChange
) -> Integration:
    """Change the settings of an alert integration, or turn it on or off.

    Raise InvalidError, which names the field, if a value is not valid. Raise NotFoundError if there
    is no such integration.
    """
    by_id = {each.id: each for each in lock_integrations(project.id, session=work.session)}
    row = by_id.pop(get_integration(work, project, integration_id).id)
    wanted = IntegrationBody.model_construct(
        **{**get_integration_settings(row), **change.given_values}
    )
    others = [*by_id.values()]
    set_integration_settings(row, wanted, others)
    is_changed = work.session.is_modified(row)
    joined = None
    if "joined_with" in change.given_values:
        ids = change.given_values["joined_with"]
        joined = monitors.join_integrations(work, row, ids, others)
    work.session.flush()
    after = get_integration(work, project, integration_id)
    if is_changed or joined:
        record_integration_change(work, project, after, joined or "changed")
    return _build_resource(Integration, after, open_questions=count_open_questions(work, after))


@action("alert_integrations.delete")
def delete_integration(work: UnitOfWork, project: ProjectView, integration_id: int) -> Integration:
    """Delete an alert integration, but keep its alerts."""
    gone = get_integration(work, project, integration_id)
    work.session.execute(delete(IntegrationRow).where(IntegrationRow.id == gone.id))
    record_integration_change(work, project, gone, "deleted")
    return _build_resource(Integration, gone)


@read_action("alert_integration_keys.credentials")
def read_credentials(
    work: UnitOfWork, project: ProjectView, integration_id: int
) -> IntegrationCredentials:
    """Show the URL and the key of an alert integration.

    The request is recorded in the audit log.
    """
    integration = get_receiving_integration(work, project, integration_id)
    details = {"project": project.path, "type": integration.type.name}
    work.record_audit_event(
        EventKind.INTEGRATION_KEY_READ, subject=integration.name, details=details
    )
    return _build_credentials(work, integration)


@read_action("alert_integration_keys.credentials")
def show_credentials(
    work: UnitOfWork, project: ProjectView, integration_id: int
) -> IntegrationCredentials:
    """Show the URL and the key of an integration on its web page.

    The web page always shows the credentials. Unlike the API, it does not record an audit event.
    """
    return _build_credentials(work, get_receiving_integration(work, project, integration_id))


@read_action("alert_integration_keys.index")
def list_keys(
    work: UnitOfWork, project: ProjectView, integration_id: int, query: KeyQuery
) -> ListPage[IntegrationKey]:
    """List the valid keys of an alert integration, with the time of their last use."""
    del query
    return ListPage(
        items=_list_valid_keys(work, get_receiving_integration(work, project, integration_id).id)
    )


@action("alert_integration_keys.rotate")
def rotate_key(
    work: UnitOfWork, project: ProjectView, integration_id: int, rotation: KeyRotation
) -> IntegrationCredentials:
    """Replace the key of an alert integration.

    The old key can stay valid for a grace period. Raise InvalidError if the end of the grace period
    is in the past or too far in the future. Raise ConflictError if the key to replace is no longer
    the current key, so that a concurrent rotation does not end the grace period early.
    """
    integration = get_receiving_integration(work, project, integration_id)
    until = rotation.previous_key_expires_at
    if until is not None and not work.now < until <= work.now + MAX_KEY_GRACE_PERIOD:
        message = (
            f"The old key can stay valid for at most {MAX_KEY_GRACE_PERIOD.days} days from now."
        )
        raise InvalidError(message, field="previous_key_expires_at")
    keyring = work.policy(Keyring)
    key = keyring.issue_credential(CredentialType.INTEGRATION_KEY)
    values = {
        "key_digest": key.digest,
        "key_ciphertext": keyring.encrypt(key.clear),
        "key_last_used_at": None,
        "previous_key_digest": IntegrationRow.key_digest if until else None,
        "previous_key_expires_at": until,
        "previous_key_last_used_at": IntegrationRow.key_last_used_at if until else None,
    }
    _set_keys(work, integration.id, rotation.key_id, values)
    old = f"valid until {until:%Y-%m-%d %H:%M} UTC" if until else "no longer valid"
    record_integration_change(work, project, integration, f"key replaced; the old one: {old}")
    return _build_credentials(work, integration)


@action("alert_integration_keys.delete")
def delete_key(work: UnitOfWork, project: ProjectView, integration_id: int, key_id: str) -> None:
    """Revoke the previous key of an alert integration.

    Raise NotFoundError if there is no such key. Raise ConflictError for the current key, which can
    only be replaced.
    """
    current, *previous = _list_valid_keys(
        work, get_receiving_integration(work, project, integration_id).id
    )
    if key_id == current.id:
        message = "This is the current key. Replace the key, or turn off the integration."
        raise ConflictError(message)
    if key_id not in {each.id for each in previous}:
        raise NotFoundError("Key not found in this integration.")
    revoke_previous_key(work, project, integration_id, current.id)


@action("alert_integration_keys.delete")
def revoke_previous_key(
    work: UnitOfWork, project: ProjectView, integration_id: int, seen: str
) -> None:
    """Revoke the previous key if `seen` is still the ID of the current key.

    Raise ConflictError if the current key was replaced in the meantime.
    """
    integration = get_receiving_integration(work, project, integration_id)
    values = dict.fromkeys(
        ("previous_key_digest", "previous_key_expires_at", "previous_key_last_used_at")
    )
    _set_keys(work, integration.id, seen, values)
    record_integration_change(work, project, integration, "previous key ended")


def record_integration_change(
    work: UnitOfWork, project: ProjectView, integration: IntegrationView, change: str
) -> None:
    """Record an audit event with a short description of the change."""
    details = {
        "change": change,
        "project": project.path,
        "type": integration.type.name,
        "active": integration.active,
    }
    work.record_audit_event(
        EventKind.INTEGRATION_CHANGED, subject=integration.name, details=details
    )


def _build_resource(
    kind: type[IntegrationResource], view: IntegrationView, **more: object
) -> IntegrationResource:
    hidden = {} if view.receives_alerts else {"url": None, "endpoint_identifier": None}
    return kind.model_validate({**vars(view), "type": view.type.name, **hidden, **more})


def _build_credentials(work: UnitOfWork, integration: IntegrationView) -> IntegrationCredentials:
    row = get_integration_row(integration.id, session=work.session)
    key = work.policy(Keyring).decrypt(row.key_ciphertext)
    return IntegrationCredentials(
        url=integration.url,
        key=key,
        url_with_key=f"{integration.url}?key={key}" if integration.accepts_key_in_url else None,
        keys=_list_valid_keys(work, integration.id),
    )


def _list_valid_keys(work: UnitOfWork, integration_id: int) -> tuple[IntegrationKey, ...]:
    """Return the valid keys of an integration, current key first."""
    row = get_integration_row(integration_id, session=work.session)
    expires_at: datetime | None = row.previous_key_expires_at
    current = IntegrationKey(
        id=_compute_key_id(row.key_digest),
        state="current",
        last_used_at=row.key_last_used_at,
        expires_at=None,
    )
    if not (row.previous_key_digest and expires_at and expires_at > work.now):
        return (current,)
    previous = IntegrationKey(
        id=_compute_key_id(row.previous_key_digest),
        state="previous",
        last_used_at=row.previous_key_last_used_at,
        expires_at=expires_at,
    )
    return (current, previous)


def _compute_key_id(digest: bytes) -> str:
    # This is part of a keyed hash of a random key, which reveals neither the key nor the hash.
    return digest.hex()[:16]


def _set_keys(
    work: UnitOfWork, integration_id: int, seen: str, values: Mapping[str, object]
) -> None:
    """Update an integration's keys if `seen` is still the ID of the current key.

    An empty `seen` matches any key. Raise ConflictError if the current key has been replaced.
    """
    row = get_integration_row(integration_id, session=work.session)
    statement = (
        build_bulk_update(IntegrationRow)
        .where(IntegrationRow.id == row.id, IntegrationRow.key_digest == row.key_digest)
        .values(values)
        .returning(IntegrationRow.id)
    )
    is_seen = seen in {"", _compute_key_id(row.key_digest)}
    if not is_seen or work.session.scalar(statement) is None:
        raise ConflictError("The key has already been replaced. Nothing was changed.")
    work.session.refresh(row)
