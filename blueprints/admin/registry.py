"""The /admin/registry page: the container registry's configuration and token keys."""

from flask import Blueprint, flash, redirect, url_for
from flask.typing import ResponseReturnValue

from domain.registry.actions import rotate_key
from domain.registry.signing_keys import list_keys
from forms.signing_keys import RegistryKeyForm
from web.access.decorators import administrator_required
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.registry import build_full_configuration
from web.services import get_current_time, get_registry_policy, get_services

registry = Blueprint("registry", __name__, url_prefix="/registry")


@registry.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """Show the registry's configuration, its notification secret and its token keys."""
    return _render_page(RegistryKeyForm())


@registry.post("/rotate")
@administrator_required
def rotate() -> ResponseReturnValue:
    """Create a key that signs tokens from the chosen time on."""
    form = RegistryKeyForm()
    if form.run_if_valid(lambda: rotate_key(get_unit_of_work(), form.requested_key)) is None:
        return _render_page(form)
    flash("Key created. Install the new certificates in every registry, then restart it.")
    return redirect(url_for("admin.registry.index"))


def _render_page(form: RegistryKeyForm) -> ResponseReturnValue:
    return render_form_page(
        "admin/registry/index.html",
        form,
        keys=list_keys(
            session=db.session(), keyring=get_services().keyring, now=get_current_time()
        ),
        ready=build_full_configuration(),
        policy=get_registry_policy(),
    )
