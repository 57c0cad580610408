"""Creates, changes, lists and deletes the integrations through which a project receives alerts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from sqlalchemy import Row, Select, delete, func, select
from sqlalchemy.orm import Session

from domain.accounts.names import LONGEST_NAME, as_segment
from domain.alerts.deliveries.log import outcome_of
from domain.alerts.formats.base import Format, IntegrationType
from domain.alerts.formats.registry import type_named
from domain.alerts.reading.mapping import UNMAPPED, FieldMapping, stored_mapping
from domain.database.paging import Listed, ListPart, fetch_part
from domain.errors import InvalidError, NotFoundError
from domain.keyring import CredentialType, Keyring
from domain.randomness import random_hex
from domain.text_links import is_web_url
from models import Delivery, Integration, Project

#: In characters.
LONGEST_URL = 2000
#: In minutes, after which open alerts without a report are resolved. Senders repeat every few
#: minutes to hours.
SHORTEST_SILENCE, LONGEST_SILENCE = 5, 90 * 24 * 60


@dataclass(frozen=True, kw_only=True)
class IntegrationDetails:
    """The settings of an integration that a maintainer chooses."""

    name: str
    active: bool
    api_url: str | None = None
    #: Its open alerts are resolved after so many minutes without a report; None: never.
    resolve_after_minutes: int | None = None


@dataclass(frozen=True, kw_only=True)
class IntegrationEdit:
    """New settings of an integration; None leaves one as it is."""

    name: str | None = None
    active: bool | None = None
    #: An empty text for none.
    api_url: str | None = None
    #: 0 for never.
    resolve_after_minutes: int | None = None

    def of(self, present: IntegrationDetails) -> IntegrationDetails:
        """Return all settings after the edit."""
        return IntegrationDetails(
            name=present.name if self.name is None else self.name,
            active=present.active if self.active is None else self.active,
            api_url=present.api_url if self.api_url is None else self.api_url or None,
            resolve_after_minutes=present.resolve_after_minutes
            if self.resolve_after_minutes is None
            else self.resolve_after_minutes or None,
        )


@dataclass(frozen=True, kw_only=True)
class IntegrationView:
    """An integration with its URL and its latest delivery."""

    id: int
    project_id: int
    name: str
    type: IntegrationType
    active: bool
    endpoint_identifier: str
    url: str
    created_at: datetime
    last_delivery_at: datetime | None
    #: `accepted` or `refused`.
    last_outcome: str | None
    api_url: str | None
    #: The payload that the mapping was made from, as JSON text.
    sample: str | None = field(repr=False)
    mapping: FieldMapping
    #: Whether a mapping is stored. One that a later release wrote may be unreadable here: then
    #: `mapping` maps nothing.
    has_mapping: bool
    #: After so long without a report its open alerts are resolved; None: never.
    resolve_after_minutes: int | None

    @property
    def details(self) -> IntegrationDetails:
        """The settings that a maintainer chooses."""
        return IntegrationDetails(
            name=self.name,
            active=self.active,
            api_url=self.api_url,
            resolve_after_minutes=self.resolve_after_minutes,
        )

    @property
    def receives(self) -> bool:
        """Whether senders can post to it, so that it has a URL, keys and deliveries."""
        return self.type.receives

    @property
    def format(self) -> Format:
        """The format of what it receives; raise NotFoundError if that is nothing."""
        if isinstance(self.type, Format):
            return self.type
        raise NotFoundError("A link to an on-call tool does not receive alerts.")


@dataclass(frozen=True, kw_only=True)
class IntegrationContext:
    """The project that integrations belong to, and what their URLs and limits depend on."""

    project_id: int
    project_path: str
    base_url: str
    #: Whether the instance's tier allows several integrations of a type, and custom mappings.
    allows_several: bool = True


def create_integration(
    context: IntegrationContext,
    kind: IntegrationType,
    details: IntegrationDetails,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> tuple[IntegrationView, str]:
    """Create an integration; return it with its key in clear text.

    Raise InvalidError naming the field.
    """
    others = _locked(context.project_id, session=session)
    same = [other for other in others if other.type == kind.name]
    if same and not context.allows_several:
        message = f"This instance's tier allows one {kind.label} in a project."
        raise InvalidError(message, field="type")
    name = _checked_name(details.name, kind, is_first=not same)
    _check(kind, details, [other for other in others if other.active])
    key = keyring.issue(CredentialType.INTEGRATION_KEY)
    integration = Integration(
        project_id=context.project_id,
        type=kind.name,
        name=name,
        active=details.active,
        endpoint_identifier=random_hex(8),
        key_digest=key.digest,
        key_ciphertext=keyring.encrypt(key.clear),
        api_url=_stored_url(kind, details.api_url),
        resolve_after_minutes=details.resolve_after_minutes,
        created_at=now,
    )
    session.add(integration)
    session.flush()  # to get the id
    return get_integration(integration.id, context, session=session), key.clear


def change_integration(
    integration_id: int, edit: IntegrationEdit, *, project_id: int, session: Session
) -> None:
    """Change name, API URL and whether it is active, of the settings that the lock finds.

    Raise InvalidError naming the field, or NotFoundError.
    """
    by_id = {each.id: each for each in _locked(project_id, session=session)}
    integration = by_id.pop(integration_id, None)
    if integration is None:
        raise _not_found()
    present = IntegrationDetails(
        name=integration.name,
        active=integration.active,
        api_url=integration.api_url,
        resolve_after_minutes=integration.resolve_after_minutes,
    )
    details, others = edit.of(present), list(by_id.values())
    kind = type_named(integration.type)
    is_alone = not any(other.type == kind.name for other in others)
    name = _checked_name(details.name, kind, is_first=is_alone)
    _check(kind, details, [other for other in others if other.active])
    integration.name = name
    integration.active = details.active
    integration.api_url = _stored_url(kind, details.api_url)
    integration.resolve_after_minutes = details.resolve_after_minutes


def needs_name(integration: IntegrationView, *, session: Session) -> bool:
    """Return whether the project has others of the type: then the label of the type is no name."""
    same = [
        each.id
        for each in _integrations(integration.project_id, session=session)
        if each.type == integration.type.name
    ]
    return len(same) > 1


def types_of(project_id: int, *, session: Session) -> tuple[str, ...]:
    """Return the types of a project's integrations: another one of these types needs a name."""
    found = _integrations(project_id, session=session)
    return tuple(dict.fromkeys(each.type for each in found))


def _checked_name(name: str, kind: IntegrationType, *, is_first: bool) -> str:
    clean = name.strip()
    if len(clean) > LONGEST_NAME:
        message = f"A name may have at most {LONGEST_NAME} characters."
        raise InvalidError(message, field="name")
    if not clean.isprintable():
        message = "A name is one line, without control characters."
        raise InvalidError(message, field="name")
    if clean:
        return clean
    if not is_first:
        message = f"Enter a name: there is another {kind.label} in this project."
        raise InvalidError(message, field="name")
    return kind.label


def _check(
    kind: IntegrationType, details: IntegrationDetails, active_others: list[Integration]
) -> None:
    _check_url(kind, details.api_url)
    _check_silence(details.resolve_after_minutes)
    if not details.active:
        return
    if kind.takes_over and active_others:
        message = (
            "No other integration can be active while the link to an on-call tool is: "
            f"turn off “{active_others[0].name}” first."
        )
        raise InvalidError(message, field="active")
    if any(type_named(other.type).takes_over for other in active_others):
        message = "The link to an external on-call tool is active; turn it off first."
        raise InvalidError(message, field="active")


def _check_silence(minutes: int | None) -> None:
    if minutes is not None and not SHORTEST_SILENCE <= minutes <= LONGEST_SILENCE:
        message = f"Enter {SHORTEST_SILENCE} to {LONGEST_SILENCE:,} minutes, or nothing for never."
        raise InvalidError(message, field="resolve_after_minutes")


def _stored_url(kind: IntegrationType, url: str | None) -> str | None:
    return url or (kind.api_url.usual if kind.api_url else None)


def _check_url(kind: IntegrationType, url: str | None) -> None:
    if len(url or "") > LONGEST_URL:
        message = f"A URL may have at most {LONGEST_URL} characters."
        raise InvalidError(message, field="api_url")
    if is_web_url(url):
        return
    if kind.api_url and kind.api_url.refusal:
        raise InvalidError(kind.api_url.refusal, field="api_url")
    if url:
        message = "A URL starts with https:// or http:// and names a host."
        raise InvalidError(message, field="api_url")


def remove_integration(integration_id: int, *, session: Session) -> None:
    """Delete an integration; its alerts and their payloads stay."""
    session.execute(delete(Integration).where(Integration.id == integration_id))


def _locked(project_id: int, *, session: Session) -> list[Integration]:
    """Lock the project against other changes of its integrations, and return these."""
    # FOR NO KEY UPDATE: inserting alerts, which refer to the project, need not wait for it.
    lock = select(Project.id).where(Project.id == project_id).with_for_update(key_share=True)
    session.execute(lock)
    return _integrations(project_id, session=session)


def _integrations(project_id: int, *, session: Session) -> list[Integration]:
    return list(
        session.scalars(
            select(Integration)
            .where(Integration.project_id == project_id)
            .order_by(Integration.id)
            .execution_options(populate_existing=True)
        )
    )


def get_integration(
    integration_id: int, context: IntegrationContext, *, session: Session
) -> IntegrationView:
    """Return an integration of the project, or raise NotFoundError."""
    one = _of_project(context).where(Integration.id == integration_id)
    row = session.execute(one).first()
    if row is None:
        raise _not_found()
    return _view(row, context)


def get_integration_row(integration_id: int, *, session: Session) -> Integration:
    """Return an integration's row for the modules beside this one, or raise NotFoundError."""
    row = session.get(Integration, integration_id)
    if row is None:
        raise _not_found()
    return row


def _not_found() -> NotFoundError:
    return NotFoundError("Integration not found in this project.")


def _receiving_url(integration: Integration, context: IntegrationContext) -> str:
    """Return the URL that a sender posts to; the name in it is for people only."""
    slug = as_segment(integration.name) or "alerts"
    path = f"{context.project_path}/alerts/notify/{slug}/{integration.endpoint_identifier}.json"
    return f"{context.base_url}/{quote(path)}"


def _of_project(context: IntegrationContext) -> Select[*tuple[Any, ...]]:
    """Return the statement for a project's integrations, each with its latest delivery."""
    last = (
        select(func.max(Delivery.id))
        .where(Delivery.integration_id == Integration.id)
        .correlate(Integration)
        .scalar_subquery()
    )
    return (
        select(Integration, Delivery.received_at, Delivery.status_code)
        .outerjoin(Delivery, Delivery.id == last)
        .where(Integration.project_id == context.project_id)
    )


def _view(row: Row[*tuple[Any, ...]], context: IntegrationContext) -> IntegrationView:
    integration: Integration = row[0]
    mapping = stored_mapping(integration.mapping)
    return IntegrationView(
        id=integration.id,
        project_id=integration.project_id,
        name=integration.name,
        type=type_named(integration.type),
        active=integration.active,
        endpoint_identifier=integration.endpoint_identifier,
        url=_receiving_url(integration, context),
        created_at=integration.created_at,
        last_delivery_at=row.received_at,
        last_outcome=None if row.status_code is None else outcome_of(row.status_code),
        api_url=integration.api_url,
        sample=integration.sample,
        mapping=mapping,
        has_mapping=mapping.reads_fields or (bool(integration.mapping) and mapping is UNMAPPED),
        resolve_after_minutes=integration.resolve_after_minutes,
    )


def list_integrations(
    context: IntegrationContext, *, session: Session
) -> tuple[IntegrationView, ...]:
    """Return a project's integrations, the oldest first."""
    rows = session.execute(_of_project(context).order_by(Integration.id))
    return tuple(_view(row, context) for row in rows)


def numbered_integrations(
    context: IntegrationContext, part: ListPart, *, session: Session
) -> Listed[IntegrationView]:
    """Return a part of a project's integrations."""
    found = fetch_part(_of_project(context), {"id": Integration.id}, part, session=session)
    return Listed(
        items=tuple(_view(row, context) for row in found.items),
        total=found.total,
        next_cursor=found.next_cursor,
    )
