"""Registers applications, changes them, and renews their secrets."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.errors import InvalidError, NotFoundError
from domain.keyring import Keyring, Kind
from domain.oauth.redirect_uris import check_redirect_uri, is_insecure
from domain.oauth.scopes import UnknownScopeError, parse_scopes
from domain.randomness import random_hex
from models import AccessToken, Application, ApplicationSecret, User

#: A row, for views that hand it back to this module.
ApplicationRow = Application


@dataclass(frozen=True, kw_only=True)
class ApplicationDetails:
    """What the owner of an application chooses."""

    name: str
    redirect_uris: tuple[str, ...]
    #: Space-separated.
    scopes: str
    confidential: bool = True
    require_pkce: bool = False
    #: Devices and password sign-ins get a refresh token as well.
    refresh_for_devices: bool = False


@dataclass(frozen=True, kw_only=True)
class ApplicationView:
    """An application as pages show it."""

    id: int
    uid: str
    name: str
    owner_name: str
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    confidential: bool
    require_pkce: bool
    refresh_for_devices: bool
    trusted: bool
    created_at: datetime
    last_used_at: datetime | None
    token_count: int
    secret_created_at: datetime | None

    @property
    def insecure_redirect_uris(self) -> tuple[str, ...]:
        """Those of the URIs that carry a code in the clear."""
        return tuple(uri for uri in self.redirect_uris if is_insecure(uri))


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A new application and the only sight of its secret."""

    application: Application
    secret: str


def check_details(details: ApplicationDetails, *, require_https: bool) -> tuple[str, ...]:
    """Return the scopes in order, or raise InvalidError naming the field."""
    if not details.name.strip() or any(each < " " for each in details.name):
        message = "Give the application a name that people will recognize, on one line."
        raise InvalidError(message, field="name")
    if not details.redirect_uris:
        message = "At least one redirect URI is needed."
        raise InvalidError(message, field="redirect_uris")
    for uri in details.redirect_uris:
        _check_uri(uri, require_https=require_https)
    try:
        scopes = parse_scopes(details.scopes)
    except UnknownScopeError as error:
        raise InvalidError(str(error).capitalize() + ".", field="scopes") from error
    if not scopes:
        message = "Choose at least one scope."
        raise InvalidError(message, field="scopes")
    return scopes


def _check_uri(uri: str, *, require_https: bool) -> None:
    try:
        check_redirect_uri(uri)
    except ValueError as error:
        raise InvalidError(str(error), field="redirect_uris") from error
    if require_https and is_insecure(uri):
        message = f"“{uri}” must start with https://: this instance requires it."
        raise InvalidError(message, field="redirect_uris")


def register(
    details: ApplicationDetails,
    *,
    owner_id: int,
    session: Session,
    keyring: Keyring,
    now: datetime,
    require_https: bool = False,
) -> Registered:
    """Store a new application and return it with its secret, which is shown this once."""
    scopes = check_details(details, require_https=require_https)
    application = Application(
        uid=random_hex(32),
        owner_id=owner_id,
        name=details.name.strip(),
        redirect_uris=list(details.redirect_uris),
        scopes=" ".join(scopes),
        confidential=details.confidential,
        require_pkce=details.require_pkce,
        refresh_for_devices=details.refresh_for_devices,
        trusted=False,
        created_at=now,
        last_used_at=None,
    )
    session.add(application)
    session.flush()  # to learn the id that the secret belongs to
    secret = renew_secret(application, session=session, keyring=keyring, now=now)
    return Registered(application=application, secret=secret)


def change(application: Application, details: ApplicationDetails, *, require_https: bool) -> None:
    """Change what the owner may change; tokens keep the scopes that users granted."""
    scopes = check_details(details, require_https=require_https)
    application.name = details.name.strip()
    application.redirect_uris = list(details.redirect_uris)
    application.scopes = " ".join(scopes)
    application.confidential = details.confidential
    application.require_pkce = details.require_pkce
    application.refresh_for_devices = details.refresh_for_devices


def renew_secret(
    application: Application, *, session: Session, keyring: Keyring, now: datetime
) -> str:
    """Replace the client secret; the old one is dead at once."""
    credential = keyring.issue(Kind.CLIENT_SECRET)
    session.execute(
        delete(ApplicationSecret).where(ApplicationSecret.application_id == application.id)
    )
    session.add(
        ApplicationSecret(application_id=application.id, digest=credential.digest, created_at=now)
    )
    return credential.clear


def remove(application: Application, *, session: Session) -> None:
    """Delete an application; its codes, tokens and consents go with it."""
    session.execute(delete(Application).where(Application.id == application.id))


def get_own(application_id: int, *, owner_id: int, session: Session) -> Application:
    """Return an application of this owner, or raise NotFoundError."""
    application = session.scalar(
        select(Application).where(
            Application.id == application_id, Application.owner_id == owner_id
        )
    )
    if application is None:
        message = "There is no such application among yours."
        raise NotFoundError(message)
    return application


def find_by_uid(uid: str, *, session: Session) -> Application | None:
    """Return the application whose client_id this is."""
    return session.scalar(select(Application).where(Application.uid == uid))


def list_own(owner_id: int, *, session: Session, now: datetime) -> tuple[ApplicationView, ...]:
    """Return the applications of an owner, the newest first."""
    return _views(Application.owner_id == owner_id, session=session, now=now)


def view(application: Application, *, session: Session, now: datetime) -> ApplicationView:
    """Return an application as pages show it."""
    return _views(Application.id == application.id, session=session, now=now)[0]


def _views(condition: object, *, session: Session, now: datetime) -> tuple[ApplicationView, ...]:
    live = (
        select(func.count())
        .where(
            AccessToken.application_id == Application.id,
            AccessToken.revoked_at.is_(None),
            (AccessToken.expires_at > now) | AccessToken.refresh_digest.is_not(None),
        )
        .scalar_subquery()
    )
    secret_time = (
        select(func.max(ApplicationSecret.created_at))
        .where(ApplicationSecret.application_id == Application.id)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Application, User.name, live, secret_time)
        .join(User, User.id == Application.owner_id)
        .where(condition)  # type: ignore[arg-type]
        .order_by(Application.id.desc())
    )
    return tuple(
        ApplicationView(
            id=application.id,
            uid=application.uid,
            name=application.name,
            owner_name=owner_name,
            redirect_uris=tuple(application.redirect_uris),
            scopes=tuple(application.scopes.split()),
            confidential=application.confidential,
            require_pkce=application.require_pkce,
            refresh_for_devices=application.refresh_for_devices,
            trusted=application.trusted,
            created_at=application.created_at,
            last_used_at=application.last_used_at,
            token_count=token_count,
            secret_created_at=created_at,
        )
        for application, owner_name, token_count, created_at in rows
    )
