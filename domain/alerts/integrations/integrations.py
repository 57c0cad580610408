"""Where a project receives alerts: makes, changes, shows and removes integrations."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.accounts.names import LONGEST_NAME, as_segment
from domain.alerts.integration_type import IntegrationType
from domain.errors import InvalidError, NotFoundError
from domain.keyring import Keyring, Kind
from domain.randomness import random_hex
from domain.text_links import is_web_address
from models import Delivery, Integration, Project

#: A row, for views that hand it back to this module.
IntegrationRow = Integration


#: What the metrics type is given where nobody has an address: the features behind it are
#: deprecated, and nothing is asked there.
PLACEHOLDER_API_URL = "http://prometheus.example.com"

#: In characters.
LONGEST_URL = 2000
_ADDRESS_WANTED = {
    IntegrationType.PROMETHEUS: (
        f"Enter an API URL. Any will do, such as {PLACEHOLDER_API_URL}: nothing is asked there."
    ),
    IntegrationType.EXTERNAL: "The address of the on-call tool starts with https:// or http://.",
}


@dataclass(frozen=True, kw_only=True)
class IntegrationDetails:
    """What a maintainer chooses."""

    name: str
    active: bool
    api_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class IntegrationView:
    """An integration as pages show it."""

    id: int
    name: str
    type: IntegrationType
    active: bool
    endpoint_identifier: str
    url: str
    created_at: datetime
    last_delivery_at: datetime | None
    last_outcome: str | None
    api_url: str | None
    has_mapping: bool

    @property
    def type_label(self) -> str:
        """The type in words."""
        return self.type.label


@dataclass(frozen=True, kw_only=True)
class Place:
    """The project that integrations belong to, and the address that all URLs begin with."""

    project_id: int
    project_path: str
    base_url: str
    #: Whether this instance's tier allows more than one integration of a type.
    allows_several: bool = True


def create_integration(
    place: Place,
    kind: IntegrationType,
    details: IntegrationDetails,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> tuple[Integration, str]:
    """Store a new integration and return it with its key."""
    others = _held(place.project_id, session=session)
    same = [other for other in others if other.type == kind]
    if same and not place.allows_several:
        message = f"This instance's tier allows one {kind.label} in a project."
        raise InvalidError(message, field="type")
    name = _checked_name(details.name, kind, is_first=not same)
    _check(kind, details, [other for other in others if other.active])
    key = keyring.issue(Kind.INTEGRATION_KEY)
    integration = Integration(
        project_id=place.project_id,
        type=kind.value,
        name=name,
        active=details.active,
        endpoint_identifier=random_hex(8),
        key_digest=key.digest,
        key_ciphertext=keyring.encrypt(key.clear),
        api_url=details.api_url or None,
        created_at=now,
    )
    session.add(integration)
    session.flush()  # to learn the id, for the page that follows
    return integration, key.clear


def change_integration(
    integration: Integration, details: IntegrationDetails, *, session: Session
) -> None:
    """Change name, address and whether it is active; raise InvalidError naming the field."""
    kind = IntegrationType(integration.type)
    others = [
        other
        for other in _held(integration.project_id, session=session)
        if other.id != integration.id
    ]
    is_alone = not any(other.type == kind for other in others)
    name = _checked_name(details.name, kind, is_first=is_alone)
    _check(kind, details, [other for other in others if other.active])
    integration.name = name
    integration.active = details.active
    integration.api_url = details.api_url or None


def needs_name(integration: Integration, *, session: Session) -> bool:
    """Tell whether the project has others of the type, so that the type would not do as a name."""
    same = [
        each.id
        for each in _integrations(integration.project_id, session=session)
        if each.type == integration.type
    ]
    return len(same) > 1


def types_of(project_id: int, *, session: Session) -> tuple[str, ...]:
    """Return the types that a project has integrations of: a new one of these needs a name."""
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
        message = f"Give it a name: there is another {kind.label} in this project."
        raise InvalidError(message, field="name")
    return kind.label


def _check(
    kind: IntegrationType, details: IntegrationDetails, active_others: list[Integration]
) -> None:
    is_external = kind is IntegrationType.EXTERNAL
    if kind in _ADDRESS_WANTED and not is_web_address(details.api_url):
        raise InvalidError(_ADDRESS_WANTED[kind], field="api_url")
    if len(details.api_url or "") > LONGEST_URL:
        message = f"A URL may have at most {LONGEST_URL} characters."
        raise InvalidError(message, field="api_url")
    if not details.active:
        return
    if is_external and active_others:
        message = (
            "While the link to an on-call tool is active no other integration can be: "
            f"turn off “{active_others[0].name}” first."
        )
        raise InvalidError(message, field="active")
    if any(other.type == IntegrationType.EXTERNAL for other in active_others):
        message = "The link to an external on-call tool is active; turn it off first."
        raise InvalidError(message, field="active")


def remove_integration(integration: Integration, *, session: Session) -> None:
    """Delete an integration; its alerts and their payloads stay."""
    session.execute(delete(Integration).where(Integration.id == integration.id))


def _held(project_id: int, *, session: Session) -> list[Integration]:
    """Return a project's integrations, and let nobody else add or change one meanwhile."""
    # Weaker than the lock that would make alerts wait, which refer to the project.
    hold = select(Project.id).where(Project.id == project_id).with_for_update(key_share=True)
    session.execute(hold)
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


def get_integration(integration_id: int, *, project_id: int, session: Session) -> Integration:
    """Return an integration of this project, or raise NotFoundError."""
    integration = session.scalar(
        select(Integration).where(
            Integration.id == integration_id, Integration.project_id == project_id
        )
    )
    if integration is None:
        message = "There is no such integration in this project."
        raise NotFoundError(message)
    return integration


def receiving_url(integration: Integration, place: Place) -> str:
    """Return the address that a sender posts to; the name in it is only for people."""
    slug = as_segment(integration.name) or "alerts"
    path = f"{place.project_path}/alerts/notify/{slug}/{integration.endpoint_identifier}.json"
    return f"{place.base_url}/{quote(path)}"


def view(integration: Integration, place: Place, *, session: Session) -> IntegrationView:
    """Return an integration as pages show it."""
    last = session.execute(
        select(Delivery.received_at, Delivery.status_code)
        .where(Delivery.integration_id == integration.id)
        .order_by(Delivery.id.desc())
        .limit(1)
    ).first()
    return IntegrationView(
        id=integration.id,
        name=integration.name,
        type=IntegrationType(integration.type),
        active=integration.active,
        endpoint_identifier=integration.endpoint_identifier,
        url=receiving_url(integration, place),
        created_at=integration.created_at,
        last_delivery_at=last.received_at if last else None,
        last_outcome=("accepted" if last.status_code < 300 else "refused") if last else None,  # noqa: PLR2004
        api_url=integration.api_url,
        has_mapping=bool(integration.mapping),
    )


def list_integrations(place: Place, *, session: Session) -> tuple[IntegrationView, ...]:
    """Return a project's integrations, the oldest first."""
    rows = _integrations(place.project_id, session=session)
    return tuple(view(row, place, session=session) for row in rows)
