"""/admin/keys: the keys that sign ID tokens."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import Event, EventKind
from domain.oauth.openid.key_lifecycle import list_key_lifecycle
from domain.oauth.openid.keys import LONGEST_ID_TOKEN, NOTICE, KeyRotation
from domain.oauth.openid.keys import rotate as make_new_key
from forms.rotation import RotationForm
from web.access.marks import administrator
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services, settings

keys = Blueprint("keys", __name__, url_prefix="/keys")


@keys.get("")
@administrator
def index() -> ResponseReturnValue:
    """Show the published keys and their periods of use."""
    return _page(RotationForm())


@keys.post("/rotate")
@administrator
def rotate() -> ResponseReturnValue:
    """Create a new key, which takes over at the chosen time."""
    form = RotationForm()
    if not form.validate_on_submit():
        return _page(form)
    kid = make_new_key(form.chosen, session=db.session(), keyring=services().keyring, now=now())
    details = {"handover": form.chosen.value}
    record_event(Event(kind=EventKind.SIGNING_KEY_ROTATED, subject=kid, details=details))
    flash("Key created and published.")
    return redirect(url_for("admin.keys.index"))


def _page(form: RotationForm) -> ResponseReturnValue:
    found = list_key_lifecycle(session=db.session(), keyring=services().keyring, now=now())
    page = render_template(
        "admin/keys/index.html",
        keys=found,
        form=form,
        rotations=KeyRotation,
        notice_period=NOTICE,
        longest=LONGEST_ID_TOKEN,
        key_set_url=f"{settings().base_url}/oauth/discovery/keys",
    )
    return page, 422 if form.errors else 200
