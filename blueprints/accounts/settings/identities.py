"""Pages that connect a user's account to identity providers, or disconnect it."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.sign_in.attempts import redirect_to_provider
from domain.accounts.identity_providers.errors import ProviderError
from domain.accounts.identity_providers.identities import (
    disconnect_own_identity,
    list_provider_connections,
)
from domain.core.errors import ConflictError, NotFoundError
from web.access.decorators import get_current_user, recent_sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work

identities = PageBlueprint(
    "identities",
    __name__,
    url_prefix="/-/user_settings/security/identities",
    leads_to_applications=True,
)


@identities.get("/<slug>")
@recent_sign_in_required
def show(slug: str) -> ResponseReturnValue:
    """Show the effects of connecting the account to an identity provider."""
    known = list_provider_connections(get_current_user().id, db.session())
    provider = next((each for each in known if each.slug == slug), None)
    if provider is None or provider.identity_id is not None:
        raise NotFoundError("There is no identity provider to connect here.")
    return render_template("identities/connect.html", provider=provider)


@identities.post("/<slug>")
@recent_sign_in_required
def connect(slug: str) -> ResponseReturnValue:
    """Redirect the browser to an identity provider, to connect the user's account."""
    try:
        return redirect_to_provider(slug, next_page="", connects=True)
    except ProviderError as error:
        flash(str(error), "warning")
        return redirect(url_for("account.security"))


@identities.post("/<int:identity_id>/disconnect")
@recent_sign_in_required
def remove(identity_id: int) -> ResponseReturnValue:
    """Disconnect the user's account from an identity provider."""
    try:
        title = disconnect_own_identity(
            get_unit_of_work(), get_current_user().sign_in_id, identity_id
        )
        flash(f"Your account is no longer connected to {title}.")
    except ConflictError as error:
        flash(str(error), "warning")
    return redirect(url_for("account.security"))
