"""Sign-in through identity providers."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.signing_in.attempts import (
    complete,
    requested_page,
    send_to_provider,
    take_asked,
)
from domain.accounts.identity_providers.errors import ProviderError
from domain.accounts.identity_providers.signing_in import connect, finish
from domain.core.errors import ConflictError
from web.access.decorators import open_to_anyone
from web.access.kept_pages import short_address
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM, leads_back
from web.http.work import work

providers = PageBlueprint(
    "providers", __name__, url_prefix="/users/auth", leads_to_applications=True
)


def _back_to_sign_in() -> ResponseReturnValue:
    flash(OUTDATED_FORM, "warning")
    next_page = short_address(requested_page())
    return redirect(url_for("sessions.sign_in", next=next_page or None), code=303)


@providers.post("/<slug>")
@open_to_anyone.but(open_before_second_factor=True)
@leads_back(_back_to_sign_in)
def begin(slug: str) -> ResponseReturnValue:
    """Redirect the browser to the provider."""
    next_page = requested_page()
    try:
        return send_to_provider(slug, next_page=next_page, connects=False)
    except ProviderError as error:
        return _trouble(error, slug, next_page)


@providers.get("/<slug>/callback")
@open_to_anyone.but(writes=True, open_before_second_factor=True)
def callback(slug: str) -> ResponseReturnValue:
    """Handle the provider's response: sign in, or connect the signed-in user's account."""
    asked, next_page = take_asked(slug)
    response = request.args.to_dict()
    try:
        if asked.sign_in_id is None:
            return complete(finish(work(), asked, response), next_page)
        flash(f"Your account is connected to {connect(work(), asked, response)}.")
    except ProviderError as error:
        return _trouble(error, slug, next_page)
    except ConflictError as error:
        flash(str(error), "warning")
    return redirect(url_for("account.security"))


def _trouble(error: ProviderError, slug: str, next_page: str) -> ResponseReturnValue:
    page = render_template(
        "sessions/provider_trouble.html", message=str(error), slug=slug, next_page=next_page or None
    )
    return page, 400
