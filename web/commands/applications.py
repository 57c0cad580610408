"""Commands about OAuth clients."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.users import get_user
from domain.audit.events import Event, EventKind
from domain.oauth.clients import applications as oauth_applications
from domain.oauth.clients.applications import ApplicationDetails
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services, settings

applications = AppGroup("applications", help="OAuth clients.")


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
@click.option("--trusted", is_flag=True, help="Do not ask users for consent; with --instance-wide.")
@click.option(
    "--instance-wide", is_flag=True, help="Instance-wide: any administrator can manage it."
)
@one_transaction
def create_application_command(*, owner: str, trusted: bool, **options: Any) -> dict[str, Any]:
    """Register an application and print its credentials. The secret is shown only once."""
    user = get_user(owner, session=db.session())
    details = ApplicationDetails(
        name=options["name"],
        redirect_uris=tuple(options["redirect_uris"]),
        scopes=options["scopes"].replace(",", " "),
        confidential=not options["public"],
        require_pkce=options["require_pkce"],
        refresh_for_devices=options["refresh_for_devices"],
        trusted=trusted,
        # Only instance-wide applications can be trusted: owners could change redirect URIs.
        is_instance_wide=options["instance_wide"] or trusted,
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
