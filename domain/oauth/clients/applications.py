"""Registers, finds, changes and deletes applications."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ColumnExpressionArgument, and_, delete, not_, select, true
from sqlalchemy.orm import Session

from domain.access.scopes import (
    ADMIN_MODE,
    NON_APPLICATION_SCOPES,
    UnknownScopeError,
    parse_scopes,
)
from domain.core.database.pagination import MAX_ID
from domain.core.errors import InvalidError, InvalidValuesError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_hex
from domain.core.tls import UnacceptableKeyError
from domain.delivery.outgoing.ip_address_policy import check_outgoing_url_allowed
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.oauth.clients.public_keys import parse_public_keys
from domain.oauth.clients.redirect_uris import find_redirect_uri_problems
from domain.oauth.clients.secrets import renew_secret
from domain.oauth.clients.service_accounts import deactivate_service_accounts, set_service_account
from domain.oauth.clients.types import ApplicationDetails, ApplicationView
from models import Application

#: Maximum length of a name in characters, which is the length of the database column.
_MAX_NAME_LENGTH = 255
#: Audit details for a change that ended an application's trusted status.
ENDED_TRUST_DETAILS: Mapping[str, str] = {"trust": "ended: users are asked for consent again"}


def build_application_view(application: Application) -> ApplicationView:
    """Return the API resource for the row of an application."""
    return ApplicationView.model_validate(application)


def check_application_details(
    details: ApplicationDetails, *, require_https: bool
) -> tuple[str, ...]:
    """Check the settings of an application, and return its scopes in the order of `SCOPES`.

    Raise InvalidError with the name of the field if a value is invalid.
    """
    _check_name(details.name)
    problems = find_redirect_uri_problems(details.redirect_uris, require_https=require_https)
    if problems:
        raise InvalidValuesError(problems, field="redirect_uris")
    try:
        scopes = parse_scopes(" ".join(details.scopes))
    except UnknownScopeError as error:
        raise InvalidError(str(error).capitalize() + ".", field="scopes") from error
    if not scopes:
        raise InvalidError("Choose at least one scope.", field="scopes")
    for scope in scopes:
        if scope in NON_APPLICATION_SCOPES:
            message = f"The scope {scope} is for access tokens, not for applications."
            raise InvalidError(message, field="scopes")
    if details.service_account and not details.confidential:
        message = "Only a confidential application can have a service account."
        raise InvalidError(message, field="service_account")
    if _parse_keys(details) and not details.confidential:
        raise InvalidError("A public application cannot have keys.", field="jwks")
    _check_backchannel_logout_uri(details.backchannel_logout_uri, require_https=require_https)
    return scopes


def _check_backchannel_logout_uri(uri: str | None, *, require_https: bool) -> None:
    field = "backchannel_logout_uri"
    if uri is None:
        return
    if "#" in uri:
        raise InvalidError("The URL must not have a fragment (the part after #).", field=field)
    if not parse_outgoing_url(uri, field=field).is_encrypted and require_https:
        raise InvalidError("The URL must start with https://.", field=field)


def check_logout_uri_address(uri: str | None, networks: str) -> None:
    """Check that the settings permit the address of a back-channel logout URL.

    `networks` is the OUTGOING_PRIVATE_ADDRESSES setting. Raise InvalidError if the address is not
    permitted.
    """
    field = "backchannel_logout_uri"
    if uri is not None:
        check_outgoing_url_allowed(parse_outgoing_url(uri, field=field), networks, field=field)


def _check_name(name: str) -> None:
    if not name.strip() or any(each < " " for each in name):
        raise InvalidError("Enter a name that users will recognize, on one line.", field="name")
    if len(name) > _MAX_NAME_LENGTH:
        raise InvalidError(f"A name can have at most {_MAX_NAME_LENGTH} characters.", field="name")


def store_application(
    details: ApplicationDetails,
    *,
    owner_id: int,
    session: Session,
    keyring: Keyring,
    now: datetime,
    require_https: bool = False,
) -> tuple[Application, str]:
    """Store a new application, and return its row and its secret.

    Raise InvalidError if a value is invalid.
    """
    scopes = check_application_details(details, require_https=require_https)
    _check_trust(details, is_instance_wide=details.is_instance_wide)
    application = Application(
        **_build_columns(details, scopes),
        uid=generate_random_hex(32),
        owner_id=owner_id,
        trusted=bool(details.trusted),
        is_instance_wide=details.is_instance_wide,
        allowed_grants=" ".join(details.allowed_grants or ()),
        created_at=now,
        last_used_at=None,
    )
    session.add(application)
    session.flush()  # This assigns the ID that the secret refers to.
    if details.service_account:
        set_service_account(application, is_wanted=True, session=session, now=now)
    return application, renew_secret(application.id, session=session, keyring=keyring, now=now)


def _build_columns(details: ApplicationDetails, scopes: tuple[str, ...]) -> dict[str, object]:
    """Return the column values that are written both on registration and on changes."""
    return {
        "name": details.name.strip(),
        "redirect_uris": list(details.redirect_uris),
        "scopes": " ".join(scopes),
        "confidential": details.confidential,
        "require_pkce": details.require_pkce,
        "refresh_for_devices": details.refresh_for_devices,
        "require_dpop": details.require_dpop,
        "omit_iss": details.omit_iss,
        "jwks": _parse_keys(details),
        "backchannel_logout_uri": details.backchannel_logout_uri,
        "refresh_idle_days": details.refresh_idle_days,
        "refresh_longest_days": details.refresh_longest_days,
    }


def _parse_keys(details: ApplicationDetails) -> dict[str, Any] | None:
    try:
        return parse_public_keys(details.jwks or "")
    except UnacceptableKeyError as error:
        raise InvalidError(str(error), field="jwks") from error


def _check_trust(details: ApplicationDetails, *, is_instance_wide: bool) -> None:
    if details.trusted and not is_instance_wide:
        raise InvalidError("Only an instance-wide application can be trusted.", field="trusted")
    if ADMIN_MODE in details.scopes and not is_instance_wide:
        message = f"Only an instance-wide application can have the {ADMIN_MODE} scope."
        raise InvalidError(message, field="scopes")


def is_trusted(application: Application) -> bool:
    """Return whether an application is trusted, which means that users are not asked for consent.

    Applications with an owner are never trusted, since the owner could change the redirect URIs.
    """
    return application.trusted and application.is_instance_wide


#: SQL condition that is equivalent to `is_trusted`.
IS_TRUSTED = and_(Application.trusted, Application.is_instance_wide)


def update_application(
    application: Application,
    details: ApplicationDetails,
    *,
    require_https: bool,
    session: Session,
    now: datetime,
) -> bool:
    """Change an application, and return whether it lost its trusted status.

    Existing tokens keep the scopes that users granted. The application loses its trusted status if
    a user who is not an administrator changes the redirect URIs, the scopes or the client type.
    Raise InvalidError with the name of the field if a value is invalid.
    """
    scopes = check_application_details(details, require_https=require_https)
    is_instance_wide = application.is_instance_wide or details.is_instance_wide
    _check_trust(details, is_instance_wide=is_instance_wide)
    was_trusted = is_trusted(application)
    if details.trusted is not None:
        application.trusted = details.trusted
    elif _changes_trusted_properties(application, details, scopes):
        application.trusted = False
    application.is_instance_wide = is_instance_wide
    if details.allowed_grants is not None:
        application.allowed_grants = " ".join(details.allowed_grants)
    for name, value in _build_columns(details, scopes).items():
        setattr(application, name, value)
    is_wanted = details.service_account
    if is_wanted or application.service_account:
        set_service_account(application, is_wanted=is_wanted, session=session, now=now)
    return was_trusted and not is_trusted(application)


def _changes_trusted_properties(
    application: Application, details: ApplicationDetails, scopes: tuple[str, ...]
) -> bool:
    """Return whether a change affects the properties on which the trusted status is based."""
    return (
        set(details.redirect_uris) != set(application.redirect_uris)
        or " ".join(scopes) != application.scopes
        or details.confidential != application.confidential
    )


def delete_matching_applications(condition: ColumnElement[bool], *, session: Session) -> int:
    """Delete applications with their codes, tokens and consents.

    Return the number of deleted applications.
    """
    deactivate_service_accounts(condition, session=session)
    return len(
        session.scalars(delete(Application).where(condition).returning(Application.id)).all()
    )


def get_own_application(application_id: int, *, owner_id: int, session: Session) -> ApplicationView:
    """Return an application that the user owns.

    Raise NotFoundError if there is no such application.
    """
    return build_application_view(
        get_application_row(application_id, build_owner_condition(owner_id), session=session)
    )


def get_any_application(application_id: int, *, session: Session) -> ApplicationView:
    """Return an application regardless of its owner, for administrators.

    Raise NotFoundError if there is no such application.
    """
    return build_application_view(get_application_row(application_id, true(), session=session))


def list_newest_own_applications(
    owner_id: int, *, count: int, session: Session
) -> tuple[ApplicationView, ...]:
    """Return at most `count` applications that a user owns, newest first."""
    newest = (
        select(Application).where(build_owner_condition(owner_id)).order_by(Application.id.desc())
    )
    return tuple(build_application_view(each) for each in session.scalars(newest.limit(count)))


def build_owner_condition(owner_id: int) -> ColumnElement[bool]:
    """Return an SQL condition that is true for applications that a user owns.

    Instance-wide applications have no owner.
    """
    return and_(Application.owner_id == owner_id, not_(Application.is_instance_wide))


def get_application_row(
    application_id: int, condition: ColumnExpressionArgument[bool], *, session: Session
) -> Application:
    """Return the application row with this ID if it meets a condition.

    Raise NotFoundError if there is no such application.
    """
    statement = select(Application).where(Application.id == application_id, condition)
    application = session.scalar(statement) if application_id <= MAX_ID else None
    if application is None:
        raise NotFoundError("Application not found, or you do not have access.")
    return application


def find_application_row(uid: str, *, session: Session) -> Application | None:
    """Return the row with this client_id, or None."""
    return session.scalar(select(Application).where(Application.uid == uid))


def find_application(uid: str, *, session: Session) -> ApplicationView | None:
    """Return the application with this client_id, or None."""
    application = find_application_row(uid, session=session)
    return build_application_view(application) if application else None
