"""Registers, finds, changes and removes applications."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, ColumnExpressionArgument, and_, delete, not_, select, true
from sqlalchemy.orm import Session

from domain.access.scopes import (
    ADMIN_MODE,
    NOT_FOR_APPLICATIONS,
    UnknownScopeError,
    parse_scopes,
)
from domain.database.paging import LARGEST_ID
from domain.errors import InvalidError, InvalidValuesError, NotFoundError
from domain.keyring import Keyring
from domain.oauth.clients.redirect_uris import is_insecure, problems_of
from domain.oauth.clients.secrets import renew_secret
from domain.randomness import random_hex
from models import Application

#: The length of the column.
_LONGEST_NAME = 255
#: The audit detail of an edit that ended the trust in an application.
ENDED_TRUST: Mapping[str, str] = {"trust": "ended: users are asked for consent again"}


@dataclass(frozen=True, kw_only=True)
class ApplicationView:
    """An application as pages and the API see it."""

    id: int
    uid: str
    name: str
    owner_id: int
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    confidential: bool
    require_pkce: bool
    refresh_for_devices: bool
    require_dpop: bool
    omit_iss: bool
    trusted: bool
    is_instance_wide: bool
    #: Grant types.
    allowed_grants: tuple[str, ...]
    created_at: datetime
    last_used_at: datetime | None
    #: The metadata of a self-registered client.
    own_words: Mapping[str, object] | None

    @property
    def registered_itself(self) -> bool:
        """Whether its name and addresses come from the client alone (RFC 7591)."""
        return self.own_words is not None

    @property
    def insecure_redirect_uris(self) -> tuple[str, ...]:
        """Those of the URIs that carry a code in the clear."""
        return tuple(uri for uri in self.redirect_uris if is_insecure(uri))

    def is_owned_by(self, user_id: int) -> bool:
        """Return whether a user owns it; applications of the instance have no owner."""
        return self.owner_id == user_id and not self.is_instance_wide


def view_of(application: Application) -> ApplicationView:
    """Return the view of a row."""
    return ApplicationView(
        id=application.id,
        uid=application.uid,
        name=application.name,
        owner_id=application.owner_id,
        redirect_uris=tuple(application.redirect_uris),
        scopes=tuple(application.scopes.split()),
        confidential=application.confidential,
        require_pkce=application.require_pkce,
        refresh_for_devices=application.refresh_for_devices,
        require_dpop=application.require_dpop,
        omit_iss=application.omit_iss,
        trusted=is_trusted(application),
        is_instance_wide=application.is_instance_wide,
        allowed_grants=tuple(application.allowed_grants.split()),
        created_at=application.created_at,
        last_used_at=application.last_used_at,
        own_words=application.client_metadata,
    )


@dataclass(frozen=True, kw_only=True)
class ApplicationDetails:
    """The settings of an application that its owner chooses."""

    name: str
    #: None for device codes and passwords only.
    redirect_uris: tuple[str, ...]
    #: Space-separated.
    scopes: str
    confidential: bool = True
    require_pkce: bool = False
    #: Devices and password sign-ins get a refresh token as well.
    refresh_for_devices: bool = False
    #: Its tokens have to be bound to a key (RFC 9449).
    require_dpop: bool = False
    #: Written for GitLab: it gets no `iss` (RFC 9207) with codes and errors.
    omit_iss: bool = False
    #: Users are not asked for consent. For administrators alone to choose, and for applications of
    #: the instance alone; None leaves it as it is.
    trusted: bool | None = None
    #: Belongs to the instance and not to the user who registers it; this cannot be undone.
    is_instance_wide: bool = False
    #: The grant types allowed to it, of those that need it. For administrators alone to choose;
    #: None leaves them as they are.
    allowed_grants: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class RegisteredApplication:
    """A new application and its secret, which is stored only as a hash."""

    application: ApplicationView
    secret: str


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A changed application, and whether the change ended its trust."""

    application: ApplicationView
    has_lost_trust: bool


def check_details(details: ApplicationDetails, *, require_https: bool) -> tuple[str, ...]:
    """Return the scopes in order, or raise InvalidError naming the field."""
    _check_name(details.name)
    problems = problems_of(details.redirect_uris, require_https=require_https)
    if problems:
        raise InvalidValuesError(problems, field="redirect_uris")
    try:
        scopes = parse_scopes(details.scopes)
    except UnknownScopeError as error:
        raise InvalidError(str(error).capitalize() + ".", field="scopes") from error
    if not scopes:
        message = "Choose at least one scope."
        raise InvalidError(message, field="scopes")
    for scope in scopes:
        if scope in NOT_FOR_APPLICATIONS:
            message = f"The scope {scope} is for access tokens, not for applications."
            raise InvalidError(message, field="scopes")
    return scopes


def _check_name(name: str) -> None:
    if not name.strip() or any(each < " " for each in name):
        message = "Enter a name that users will recognize, on one line."
        raise InvalidError(message, field="name")
    if len(name) > _LONGEST_NAME:
        message = f"A name may have at most {_LONGEST_NAME} characters."
        raise InvalidError(message, field="name")


def register(
    details: ApplicationDetails,
    *,
    owner_id: int,
    session: Session,
    keyring: Keyring,
    now: datetime,
    require_https: bool = False,
) -> RegisteredApplication:
    """Store a new application and return it with its secret; raise InvalidError with the field."""
    application, secret = store_application(
        details,
        owner_id=owner_id,
        session=session,
        keyring=keyring,
        now=now,
        require_https=require_https,
    )
    return RegisteredApplication(application=view_of(application), secret=secret)


def store_application(
    details: ApplicationDetails,
    *,
    owner_id: int,
    session: Session,
    keyring: Keyring,
    now: datetime,
    require_https: bool = False,
) -> tuple[Application, str]:
    """Store a new application and return its row and its secret; see `register`."""
    scopes = check_details(details, require_https=require_https)
    _check_trust(details, is_instance_wide=details.is_instance_wide)
    application = Application(
        **_columns(details, scopes),
        uid=random_hex(32),
        owner_id=owner_id,
        trusted=bool(details.trusted),
        is_instance_wide=details.is_instance_wide,
        allowed_grants=" ".join(details.allowed_grants or ()),
        created_at=now,
        last_used_at=None,
    )
    session.add(application)
    session.flush()  # to learn the id that the secret belongs to
    return application, renew_secret(application.id, session=session, keyring=keyring, now=now)


def _columns(details: ApplicationDetails, scopes: tuple[str, ...]) -> dict[str, object]:
    """Return the columns that registering and changing an application write alike."""
    return {
        "name": details.name.strip(),
        "redirect_uris": list(details.redirect_uris),
        "scopes": " ".join(scopes),
        "confidential": details.confidential,
        "require_pkce": details.require_pkce,
        "refresh_for_devices": details.refresh_for_devices,
        "require_dpop": details.require_dpop,
        "omit_iss": details.omit_iss,
    }


def _check_trust(details: ApplicationDetails, *, is_instance_wide: bool) -> None:
    if details.trusted and not is_instance_wide:
        message = "Only an instance-wide application can be trusted."
        raise InvalidError(message, field="trusted")
    if ADMIN_MODE in details.scopes.split() and not is_instance_wide:
        message = f"Only an instance-wide application can have the scope {ADMIN_MODE}."
        raise InvalidError(message, field="scopes")


def is_trusted(application: Application) -> bool:
    """Return whether users are not asked for consent: its owner could change where codes go."""
    return application.trusted and application.is_instance_wide


#: The same as a condition.
TRUSTED = and_(Application.trusted, Application.is_instance_wide)


def change(
    application_id: int, details: ApplicationDetails, *, session: Session, require_https: bool
) -> Changed:
    """Change what the owner may change; tokens keep the scopes that users granted.

    An application loses its trust when anybody but an administrator changes where it sends people
    or what it asks for. Raises NotFoundError if it is gone, and InvalidError with the field.
    """
    application = session.get(Application, application_id)
    if application is None:
        raise _missing()
    scopes = check_details(details, require_https=require_https)
    is_instance_wide = application.is_instance_wide or details.is_instance_wide
    _check_trust(details, is_instance_wide=is_instance_wide)
    was_trusted = is_trusted(application)
    if details.trusted is not None:
        application.trusted = details.trusted
    elif _is_another(application, details, scopes):
        application.trusted = False
    application.is_instance_wide = is_instance_wide
    if details.allowed_grants is not None:
        application.allowed_grants = " ".join(details.allowed_grants)
    for name, value in _columns(details, scopes).items():
        setattr(application, name, value)
    return Changed(
        application=view_of(application),
        has_lost_trust=was_trusted and not is_trusted(application),
    )


def _is_another(
    application: Application, details: ApplicationDetails, scopes: tuple[str, ...]
) -> bool:
    """Return whether an edit touches what trust rests on."""
    return (
        set(details.redirect_uris) != set(application.redirect_uris)
        or " ".join(scopes) != application.scopes
        or details.confidential != application.confidential
    )


def remove(application_id: int, *, session: Session) -> None:
    """Delete an application; its codes, tokens and consents go with it."""
    session.execute(delete(Application).where(Application.id == application_id))


def get_own(application_id: int, *, owner_id: int, session: Session) -> ApplicationView:
    """Return an application that this owner registered for themselves, or raise NotFoundError."""
    return _get(application_id, owned_by(owner_id), session=session)


def newest_own(owner_id: int, *, count: int, session: Session) -> tuple[ApplicationView, ...]:
    """Return at most so many of the applications that a user owns, the newest first."""
    newest = select(Application).where(owned_by(owner_id)).order_by(Application.id.desc())
    return tuple(view_of(each) for each in session.scalars(newest.limit(count)))


def get_instance_wide(application_id: int, *, session: Session) -> ApplicationView:
    """Return an application of the instance, or raise NotFoundError."""
    return _get(application_id, Application.is_instance_wide, session=session)


def get_any(application_id: int, *, session: Session) -> ApplicationView:
    """Return an application of any owner, or raise NotFoundError; for administrators."""
    return _get(application_id, true(), session=session)


def owned_by(owner_id: int) -> ColumnElement[bool]:
    """Return the condition that a user owns an application; those of the instance have no owner."""
    return and_(Application.owner_id == owner_id, not_(Application.is_instance_wide))


def _get(
    application_id: int, condition: ColumnExpressionArgument[bool], *, session: Session
) -> ApplicationView:
    statement = select(Application).where(Application.id == application_id, condition)
    application = session.scalar(statement) if application_id <= LARGEST_ID else None
    if application is None:
        raise _missing()
    return view_of(application)


def _missing() -> NotFoundError:
    return NotFoundError("Application not found, or you do not have access.")


def find_by_uid(uid: str, *, session: Session) -> Application | None:
    """Return the row with this client_id, or None."""
    return session.scalar(select(Application).where(Application.uid == uid))


def find_application(uid: str, *, session: Session) -> ApplicationView | None:
    """Return the application with this client_id, or None."""
    application = find_by_uid(uid, session=session)
    return view_of(application) if application else None
