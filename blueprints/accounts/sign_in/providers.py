"""Pages for sign-in through identity providers."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.accounts.sign_in.attempts import (
    complete_sign_in,
    get_requested_page,
    pop_provider_request,
    redirect_to_provider,
)
from domain.accounts.identity_providers.errors import ProviderError
from domain.accounts.identity_providers.sign_in import connect_identity, finish_provider_sign_in
from domain.core.errors import ConflictError
from web.access.decorators import open_to_anyone
from web.access.return_urls import shorten_return_url
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM_MESSAGE, redirect_outdated_form
from web.http.unit_of_work import get_unit_of_work

providers = PageBlueprint(
    "providers", __name__, url_prefix="/users/auth", leads_to_applications=True
)


def _redirect_to_sign_in() -> ResponseReturnValue:
    flash(OUTDATED_FORM_MESSAGE, "warning")
    next_page = shorten_return_url(get_requested_page())
    return redirect(url_for("sessions.sign_in", next=next_page or None), code=303)


@providers.post("/<slug>")
@open_to_anyone.with_changes(open_before_second_factor=True)
@redirect_outdated_form(_redirect_to_sign_in)
def begin(slug: str) -> ResponseReturnValue:
    """Redirect the browser to the provider."""
    next_page = get_requested_page()
    try:
        return redirect_to_provider(slug, next_page=next_page, connects=False)
    except ProviderError as error:
        return _render_provider_error(error, slug, next_page)


@providers.get("/<slug>/callback")
@open_to_anyone.with_changes(writes=True, open_before_second_factor=True)
def callback(slug: str) -> ResponseReturnValue:
    """Handle the provider's response: sign in, or connect the signed-in user's account."""
    asked, next_page = pop_provider_request(slug)
    response = request.args.to_dict()
    try:
        if asked.sign_in_id is None:
            return complete_sign_in(
                finish_provider_sign_in(get_unit_of_work(), asked, response), next_page
            )
        flash(
            f"Your account is connected to {connect_identity(get_unit_of_work(), asked, response)}."
        )
    except ProviderError as error:
        return _render_provider_error(error, slug, next_page)
    except ConflictError as error:
        flash(str(error), "warning")
    return redirect(url_for("account.security"))


def _render_provider_error(error: ProviderError, slug: str, next_page: str) -> ResponseReturnValue:
    page = render_template(
        "sessions/provider_trouble.html", message=str(error), slug=slug, next_page=next_page or None
    )
    return page, 400
