"""The /admin/identity_providers page: identity providers that users sign in through."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.identity_providers import actions
from domain.accounts.identity_providers.presets import PRESETS
from domain.accounts.identity_providers.types import (
    ConnectionTest,
    IdentityProviderBody,
    IdentityProviderChangeBody,
    IdentityProviderQuery,
)
from forms.identity_providers import IdentityProviderForm, NewIdentityProviderForm
from web.access.decorators import administrator_required
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query

identity_providers = Blueprint("identity_providers", __name__, url_prefix="/identity_providers")
_MAX_SHOWN_PROVIDERS = 100


@identity_providers.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """List the identity providers."""
    get_list_query()
    found = actions.list_providers(
        get_unit_of_work(), IdentityProviderQuery(per_page=_MAX_SHOWN_PROVIDERS)
    )
    return render_template("admin/identity_providers/index.html", providers=found.items)


@identity_providers.route("/new", methods=["GET", "POST"])
@administrator_required
def new() -> ResponseReturnValue:
    """Show the kinds of providers, or create a provider of the selected kind."""
    preset = PRESETS.get(request.args.get("preset", ""))
    if preset is None:
        return render_template("admin/identity_providers/choose.html", presets=PRESETS.values())
    form = NewIdentityProviderForm.from_preset(preset)
    values = form.list_field_values
    made = form.run_if_valid(
        lambda: actions.create_provider(
            get_unit_of_work(),
            form.build_entered_body(IdentityProviderBody, **values, preset=preset.key),
        )
    )
    if made is not None:
        flash(f"Identity provider {made.title} added. Test the connection next.")
        return _redirect_to_provider(made.id)
    return render_form_page(
        "admin/identity_providers/new.html",
        form,
        preset=preset,
        provider=None,
        redirect_uri=actions.build_provider_redirect_uri(
            get_unit_of_work(), form.slug.data or "NAME"
        ),
    )


@identity_providers.get("/<int:provider_id>")
@administrator_required
def show(provider_id: int) -> ResponseReturnValue:
    """Show an identity provider and the form to change it."""
    return _render_show_page(provider_id)


@identity_providers.post("/<int:provider_id>")
@administrator_required
def change(provider_id: int) -> ResponseReturnValue:
    """Change the settings of an identity provider."""
    form = IdentityProviderForm()
    changed = form.run_if_valid(
        lambda: actions.change_provider(
            get_unit_of_work(),
            provider_id,
            form.build_entered_body(IdentityProviderChangeBody, **form.list_field_values),
        )
    )
    if changed is None:
        return _render_show_page(provider_id, form=form)
    flash("Identity provider saved.")
    return _redirect_to_provider(provider_id)


@identity_providers.post("/<int:provider_id>/test", endpoint="test")
@administrator_required
def test_connection(provider_id: int) -> ResponseReturnValue:
    """Request the provider's metadata and show the result."""
    return _render_show_page(
        provider_id, result=actions.test_connection(get_unit_of_work(), provider_id)
    )


@identity_providers.post("/<int:provider_id>/delete")
@administrator_required
def delete(provider_id: int) -> ResponseReturnValue:
    """Delete an identity provider, and sign out the users who signed in through it."""
    removed = actions.delete_provider(get_unit_of_work(), provider_id)
    flash(f"Identity provider {removed.title} deleted.")
    return redirect(url_for("admin.identity_providers.index"))


def _render_show_page(
    provider_id: int,
    *,
    form: IdentityProviderForm | None = None,
    result: ConnectionTest | None = None,
) -> ResponseReturnValue:
    provider = actions.show_provider(get_unit_of_work(), provider_id)
    page = render_template(
        "admin/identity_providers/show.html",
        provider=provider,
        preset=PRESETS[provider.preset],
        form=form or IdentityProviderForm.build_from_provider(provider),
        result=result,
    )
    return page, 422 if form and form.errors else 200


def _redirect_to_provider(provider_id: int) -> ResponseReturnValue:
    return redirect(url_for("admin.identity_providers.show", provider_id=provider_id))
