"""Actions on applications.

The API manages instance-wide applications; pages and commands manage all applications. In operator
commands, `work.actor.id` is the user who becomes the owner.
"""

from sqlalchemy import ColumnExpressionArgument, select, true

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.errors import ForbiddenError
from domain.core.grace_period import GracePeriod
from domain.core.keyring import Keyring
from domain.core.types.pagination import ListPage
from domain.oauth.applications import rejected_requests
from domain.oauth.applications.application_users import find_application_users
from domain.oauth.applications.removed_scopes import expire_tokens_with_removed_scopes
from domain.oauth.applications.types import (
    Application,
    ApplicationBody,
    ApplicationChange,
    ApplicationQuery,
    ApplicationUser,
    ApplicationUserQuery,
    ApplicationWithSecret,
    EndedTokens,
    NewApplication,
    OwnApplicationBody,
    RejectedRequest,
    RejectedRequestQuery,
    SecretRenewalBody,
)
from domain.oauth.clients import applications, secrets
from domain.oauth.clients.allowed_groups import find_allowed_group_ids
from domain.oauth.clients.application_lists import count_application_users, count_applications
from domain.oauth.clients.types import ApplicationDetails, ApplicationView
from domain.oauth.context import OAuthPolicy
from models import Application as Row

_ADMINISTRATOR_FIELDS = frozenset({"trusted", "is_instance_wide", "allowed_grants"})


@read_action("applications.index")
def list_applications(work: UnitOfWork, query: ApplicationQuery) -> ListPage[Application]:
    """List the instance-wide applications, newest first."""
    rows = select(Row).where(Row.is_instance_wide).order_by(Row.id.desc())
    found = work.session.scalars(rows.offset(query.offset).limit(query.page_size))
    total = count_applications(session=work.session).instance_wide
    return ListPage(items=[_build_resource(each) for each in found], total=total)


@action("applications.create")
def create_application(work: UnitOfWork, new: ApplicationBody) -> NewApplication:
    """Create an instance-wide application.

    Only this response contains the secret.
    """
    details = ApplicationDetails(
        **new.model_dump(exclude={"redirect_uri"}),
        redirect_uris=tuple(new.redirect_uri.split()),
        is_instance_wide=True,
    )
    row, secret = _store_application(work, details)
    return _build_new_application(row, secret)


@action("applications.delete")
def delete_application(work: UnitOfWork, application_id: int) -> Application:
    """Delete an instance-wide application and all its tokens."""
    return _build_resource(
        _delete_application(work, _get_row(work, application_id, Row.is_instance_wide))
    )


@action("applications.renew")
def renew_secret(work: UnitOfWork, application_id: int) -> NewApplication:
    """Renew the secret of an application.

    The old secret stops working immediately.
    """
    row = _get_row(work, application_id, Row.is_instance_wide)
    return _build_new_application(row, _renew_client_secret(work, row, GracePeriod.NOW))


@read_action("applications.refused_requests")
def list_rejected_requests(
    work: UnitOfWork, application_id: int, query: RejectedRequestQuery
) -> ListPage[RejectedRequest]:
    """List the rejected authorization and token requests for an application, newest first."""
    row, session = _get_manageable_row(work, application_id), work.session
    return ListPage(
        items=rejected_requests.find_rejected_requests(
            row.id, session=session, offset=query.offset, limit=query.page_size
        ),
        total=rejected_requests.count_rejected_requests(row.id, session=session),
    )


@read_action("applications.people", command="users")
def list_application_users(
    work: UnitOfWork, application_id: int, query: ApplicationUserQuery
) -> ListPage[ApplicationUser]:
    """List the users of an application.

    The owner of an application sees a user's names only if the application may read these names.
    """
    row = _get_manageable_row(work, application_id)
    return ListPage(
        items=find_application_users(work, row.id, query),
        total=count_application_users(row.id, session=work.session, now=work.now),
    )


@read_action("applications.show")
def show_application(work: UnitOfWork, application_id: int) -> ApplicationView:
    """Show an application."""
    return applications.build_application_view(_get_manageable_row(work, application_id))


@action("applications.register", command="create")
def register_application(work: UnitOfWork, new: OwnApplicationBody) -> ApplicationWithSecret:
    """Create an application. Its secret is shown only once."""
    _check_administrator_fields(work, new)
    # Only instance-wide applications can be trusted, since an owner could change redirect URIs.
    details = new.model_copy(update={"is_instance_wide": new.is_instance_wide or bool(new.trusted)})
    row, secret = _store_application(work, details)
    # Every copy of a public client would contain its secret.
    return _build_application_with_secret(row, secret if row.confidential else None)


@action("applications.edit")
def change_application(
    work: UnitOfWork, application_id: int, change: ApplicationChange
) -> ApplicationView:
    """Change an application.

    Access tokens keep their scopes until they expire.
    """
    _check_administrator_fields(work, change)
    row = _get_manageable_row(work, application_id)
    groups = row.allowed_group_ids
    if "allowed_groups" in change.given_values:
        row.allowed_group_ids = find_allowed_group_ids(change.allowed_groups or (), work)
    present = ApplicationDetails.model_validate(row, from_attributes=True)
    wanted = {"trusted": None, "allowed_grants": None, **change.given_values}
    if "allowed_grants" in change.given_values:
        wanted["allowed_grants"] = change.allowed_grants or ()
    if wanted.get("backchannel_logout_uri") not in {None, present.backchannel_logout_uri}:
        _check_logout_uri(work, change.backchannel_logout_uri)
    has_lost_trust = applications.update_application(
        row,
        present.model_copy(update=wanted),
        require_https=_requires_https(work),
        session=work.session,
        now=work.now,
    )
    after = ApplicationDetails.model_validate(row, from_attributes=True)
    if present != after or groups != row.allowed_group_ids:
        more = applications.ENDED_TRUST_DETAILS if has_lost_trust else {}
        _record_event(work, EventKind.APPLICATION_CHANGED, row, **more)
    return applications.build_application_view(row)


@action("applications.rotate", command="renew-secret")
def rotate_secret(
    work: UnitOfWork, application_id: int, renewal: SecretRenewalBody
) -> ApplicationWithSecret:
    """Create a new secret for an application. The secret is shown only once."""
    row = _get_manageable_row(work, application_id)
    return _build_application_with_secret(
        row, _renew_client_secret(work, row, GracePeriod.from_key(renewal.overlap))
    )


@action("applications.end_secret")
def revoke_old_secret(work: UnitOfWork, application_id: int, secret_id: int) -> None:
    """Revoke the older of two secrets."""
    row = _get_manageable_row(work, application_id)
    secrets.revoke_secret(row.id, secret_id, session=work.session)
    _record_event(work, EventKind.APPLICATION_CHANGED, row, ended="the older secret")


@action("applications.end_removed", command="end-removed-scopes")
def expire_removed_scope_tokens(work: UnitOfWork, application_id: int) -> EndedTokens:
    """Expire the access tokens with scopes that were removed from the application."""
    row = _get_manageable_row(work, application_id)
    ended = expire_tokens_with_removed_scopes(work, row.id, row.scopes.split())
    if ended:
        _record_event(work, EventKind.APPLICATION_CHANGED, row, ended_access_tokens=ended)
    return EndedTokens(tokens=ended)


@action("applications.remove", command="delete")
def remove_application(work: UnitOfWork, application_id: int) -> ApplicationView:
    """Delete an application with all its tokens."""
    return applications.build_application_view(
        _delete_application(work, _get_manageable_row(work, application_id))
    )


def _get_row(
    work: UnitOfWork, application_id: int, condition: ColumnExpressionArgument[bool]
) -> Row:
    return applications.get_application_row(application_id, condition, session=work.session)


def _get_manageable_row(work: UnitOfWork, application_id: int) -> Row:
    """Return an application that the actor may manage.

    Users may manage their own applications, and administrators may manage all applications.
    """
    is_own = applications.build_owner_condition(work.actor.id or 0)
    return _get_row(work, application_id, true() if work.actor.is_admin else is_own)


def _check_administrator_fields(
    work: UnitOfWork, wanted: OwnApplicationBody | ApplicationChange
) -> None:
    names = sorted(_ADMINISTRATOR_FIELDS.intersection(wanted.given_values))
    if names and not work.actor.is_admin:
        listed = " and ".join(f"`{each}`" for each in names)
        raise ForbiddenError(f"Only administrators of the instance can set {listed}.")


def _check_logout_uri(work: UnitOfWork, uri: str | None) -> None:
    applications.check_logout_uri_address(uri, work.settings.outgoing_private_addresses)


def _store_application(work: UnitOfWork, details: ApplicationDetails) -> tuple[Row, str]:
    _check_logout_uri(work, details.backchannel_logout_uri)
    row, secret = applications.store_application(
        details,
        owner_id=work.actor.id or 0,
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
        require_https=_requires_https(work),
    )
    row.allowed_group_ids = find_allowed_group_ids(details.allowed_groups or (), work)
    _record_event(work, EventKind.APPLICATION_REGISTERED, row)
    return row, secret


def _requires_https(work: UnitOfWork) -> bool:
    return work.policy(OAuthPolicy).require_https_redirect_uris


def _renew_client_secret(work: UnitOfWork, row: Row, grace_period: GracePeriod) -> str:
    secret = secrets.renew_secret(
        row.id,
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
        grace_period=grace_period,
    )
    _record_event(work, EventKind.SECRET_RENEWED, row, old_secret_ends=grace_period.words)
    return secret


def _delete_application(work: UnitOfWork, row: Row) -> Row:
    _record_event(work, EventKind.APPLICATION_REMOVED, row)
    applications.delete_matching_applications(Row.id == row.id, session=work.session)
    return row


def _record_event(work: UnitOfWork, kind: EventKind, row: Row, **more: object) -> None:
    """Record an audit event for an application.

    If the application has an owner, the owner can also read the event.
    """
    details: dict[str, object] = {"application_id": row.uid, "scopes": row.scopes}
    if row.is_instance_wide:
        details["trusted"] = row.trusted
    if row.service_account:
        details["service_account"] = True
    if row.allowed_grants:
        details["allowed_grants"] = row.allowed_grants
    owner_id = None if row.is_instance_wide else row.owner_id
    work.record_audit_event(kind, subject=row.name, details={**details, **more}, user_id=owner_id)


def _build_resource(row: Row) -> Application:
    return Application.model_validate(applications.build_application_view(row))


def _build_new_application(row: Row, secret: str) -> NewApplication:
    return NewApplication.model_validate(
        {**dict(applications.build_application_view(row)), "secret": secret}
    )


def _build_application_with_secret(row: Row, secret: str | None) -> ApplicationWithSecret:
    return ApplicationWithSecret(**dict(applications.build_application_view(row)), secret=secret)
