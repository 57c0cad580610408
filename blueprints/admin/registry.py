"""/admin/registry: the container registry's configuration, and the keys of its tokens."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import Event, EventKind
from domain.registry.signing_keys import forget_former_keys, list_keys
from domain.registry.signing_keys import rotate as make_new_key
from forms.registry_key import RegistryKeyForm
from web.access.marks import administrator
from web.extensions import db
from web.http.audit_events import record_event
from web.registry.configuration import whole_configuration
from web.services import now, registry_policy, services

registry = Blueprint("registry", __name__, url_prefix="/registry")


@registry.get("")
@administrator
def index() -> ResponseReturnValue:
    """Show the configuration with its secret, and the keys."""
    return _page(RegistryKeyForm())


@registry.post("/rotate")
@administrator
def rotate() -> ResponseReturnValue:
    """Create a key, which signs after the chosen time."""
    form, session, keyring = RegistryKeyForm(), db.session(), services().keyring
    if not form.validate_on_submit():
        return _page(form)
    kid = make_new_key(form.chosen, session=session, keyring=keyring, now=now())
    if form.forgets_former:
        forget_former_keys(session=session, keyring=keyring, now=now())
    hours = int(form.chosen.total_seconds() // 3600)
    details = {"notice_hours": hours, "forget_former": form.forgets_former}
    record_event(Event(kind=EventKind.REGISTRY_KEY_ROTATED, subject=kid, details=details))
    flash("Key created. Give the new certificates to every registry, and restart it.")
    return redirect(url_for("admin.registry.index"))


def _page(form: RegistryKeyForm) -> ResponseReturnValue:
    page = render_template(
        "admin/registry/index.html",
        keys=list_keys(session=db.session(), keyring=services().keyring, now=now()),
        form=form,
        ready=whole_configuration(),
        policy=registry_policy(),
    )
    return page, 422 if form.errors else 200
