"""Commands about OAuth clients."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.users import get_user
from domain.audit.events import Event, EventKind
from domain.clock import written
from domain.database.paging import LARGEST_ID
from domain.grace_period import GracePeriod
from domain.oauth.clients import applications as oauth_applications
from domain.oauth.clients.applications import ApplicationDetails, ApplicationView
from domain.oauth.clients.directory import list_instance_wide
from domain.oauth.clients.secrets import renew_secret
from domain.oauth.clients.views import list_own
from domain.oauth.grants.registry import PERMITTED_GRANTS
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services, settings

applications = AppGroup("applications", help="OAuth clients.")
_ID = click.argument("application_id", metavar="ID", type=click.IntRange(1, LARGEST_ID))
_ALLOW_GRANT = click.option(
    "--allow-grant",
    "allowed_grants",
    multiple=True,
    type=click.Choice([grant.GRANT_TYPE for grant in PERMITTED_GRANTS]),
    help="A grant type that only applications may use which an administrator allows it.",
)
_MOST = 1_000


@applications.command("create")
@click.argument("name")
@click.option("--owner", required=True, help="User who owns the application.")
@click.option(
    "--redirect-uri",
    "redirect_uris",
    multiple=True,
    help="Redirect URI. Repeat for several; omit for device codes and passwords only.",
)
@click.option("--scopes", required=True, help="Space-separated scopes that it can request.")
@click.option("--public", is_flag=True, help="Public client without a secret; PKCE is required.")
@click.option(
    "--require-pkce", is_flag=True, help="Require PKCE for a confidential client as well."
)
@click.option(
    "--refresh-for-devices",
    is_flag=True,
    help="Issue refresh tokens for device codes and passwords as well.",
)
@click.option("--omit-iss", is_flag=True, help="Written for GitLab: send no iss.")
@click.option("--trusted", is_flag=True, help="Do not ask users for consent; with --instance-wide.")
@click.option(
    "--instance-wide", is_flag=True, help="Instance-wide: any administrator can manage it."
)
@_ALLOW_GRANT
@one_transaction
def create_application_command(*, owner: str, trusted: bool, **options: Any) -> dict[str, Any]:
    """Create an application and print its credentials. The secret is shown only once."""
    user = get_user(owner, session=db.session())
    details = ApplicationDetails(
        name=options["name"],
        redirect_uris=tuple(options["redirect_uris"]),
        scopes=options["scopes"].replace(",", " "),
        confidential=not options["public"],
        require_pkce=options["require_pkce"],
        refresh_for_devices=options["refresh_for_devices"],
        omit_iss=options["omit_iss"],
        trusted=trusted,
        # Only instance-wide applications can be trusted: owners could change redirect URIs.
        is_instance_wide=options["instance_wide"] or trusted,
        allowed_grants=options["allowed_grants"],
    )
    registered = oauth_applications.register(
        details,
        owner_id=user.id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
        require_https=settings().require_https_redirect_uris,
    )
    record_event(
        Event(
            kind=EventKind.APPLICATION_REGISTERED,
            user_id=user.id,
            subject=details.name,
            details={"application_id": registered.application.uid, "scopes": details.scopes},
        )
    )
    known = {"id": registered.application.id, "application_id": registered.application.uid}
    # A public client has no secret: every copy of it would contain it.
    return {**known, "secret": registered.secret} if details.confidential else known


@applications.command("list")
@click.option("--owner", help="Applications of this user; by default the instance-wide ones.")
@one_transaction
def list_applications_command(*, owner: str | None) -> dict[str, Any]:
    """List applications, newest first; at most 1,000 instance-wide ones."""
    session = db.session()
    if owner is not None:
        owner_id = get_user(owner, session=session).id
        return {
            "applications": [
                _shown(each) for each in list_own(owner_id, session=session, now=now())
            ]
        }
    found, total = list_instance_wide(offset=0, limit=_MOST, session=session)
    return {"applications": [_shown(each) for each in found], "total": total}


@applications.command("show")
@_ID
@one_transaction
def show_application_command(*, application_id: int) -> dict[str, Any]:
    """Show the application ID."""
    return _shown(oauth_applications.get_any(application_id, session=db.session()))


@applications.command("change")
@_ID
@click.option("--name", help="New name.")
@click.option("--redirect-uri", "redirect_uris", multiple=True, help="Replaces all redirect URIs.")
@click.option("--scopes", help="Replaces all scopes.")
@click.option("--require-pkce/--no-require-pkce", default=None)
@click.option("--refresh-for-devices/--no-refresh-for-devices", default=None)
@click.option("--omit-iss/--no-omit-iss", default=None, help="Written for GitLab: send no iss.")
@click.option("--trusted/--not-trusted", default=None, help="Do not ask users for consent.")
@_ALLOW_GRANT
@click.option("--forbid-grants", is_flag=True, help="Allow none but those of --allow-grant.")
@one_transaction
def change_application_command(
    *, application_id: int, allowed_grants: tuple[str, ...], forbid_grants: bool, **given: Any
) -> dict[str, Any]:
    """Change the application ID. Omitted options keep their values."""
    session = db.session()
    present = oauth_applications.get_any(application_id, session=session)
    wanted = {
        "name": present.name,
        "redirect_uris": present.redirect_uris,
        "scopes": " ".join(present.scopes),
        "require_pkce": present.require_pkce,
        "refresh_for_devices": present.refresh_for_devices,
        "omit_iss": present.omit_iss,
        "trusted": present.trusted,
        **{name: value for name, value in given.items() if value not in (None, ())},
    }
    details = ApplicationDetails(
        **{**wanted, "scopes": wanted["scopes"].replace(",", " ")},
        confidential=present.confidential,
        require_dpop=present.require_dpop,
        is_instance_wide=present.is_instance_wide,
        allowed_grants=allowed_grants if allowed_grants or forbid_grants else None,
    )
    https = settings().require_https_redirect_uris
    oauth_applications.change(application_id, details, session=session, require_https=https)
    return _recorded(EventKind.APPLICATION_CHANGED, application_id)


@applications.command("renew-secret")
@_ID
@click.option(
    "--overlap",
    type=click.Choice([each.key for each in GracePeriod]),
    default=GracePeriod.DAY.key,
    show_default=True,
    help="How long the old secret is accepted beside the new one.",
)
@one_transaction
def renew_secret_command(*, application_id: int, overlap: str) -> dict[str, Any]:
    """Create a new secret for the application ID and print it. It is shown only once."""
    secret = renew_secret(
        application_id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
        grace_period=GracePeriod.of(overlap),
    )
    return {**_recorded(EventKind.SECRET_RENEWED, application_id), "secret": secret}


@applications.command("delete")
@_ID
@one_transaction
def delete_application_command(*, application_id: int) -> dict[str, Any]:
    """Delete the application ID with all its tokens."""
    gone = _recorded(EventKind.APPLICATION_REMOVED, application_id)
    oauth_applications.remove(application_id, session=db.session())
    return {"id": gone["id"], "name": gone["name"], "deleted": True}


def _recorded(kind: EventKind, application_id: int) -> dict[str, Any]:
    """Record a change of an application, and return what it is now."""
    found = oauth_applications.get_any(application_id, session=db.session())
    details = {"application_id": found.uid, "scopes": " ".join(found.scopes)}
    record_event(Event(kind=kind, subject=found.name, details=details))
    return _shown(found)


def _shown(view: ApplicationView) -> dict[str, Any]:
    return {
        "id": view.id,
        "application_id": view.uid,
        "name": view.name,
        "redirect_uris": list(view.redirect_uris),
        "scopes": list(view.scopes),
        "confidential": view.confidential,
        "omit_iss": view.omit_iss,
        "trusted": view.trusted,
        "instance_wide": view.is_instance_wide,
        "allowed_grants": list(view.allowed_grants),
        "created_at": written(view.created_at),
        "last_used_at": written(view.last_used_at) if view.last_used_at else None,
    }
