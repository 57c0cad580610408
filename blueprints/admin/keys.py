"""The page /admin/keys: the keys that sign ID tokens."""

from flask import Blueprint, flash, redirect, url_for
from flask.typing import ResponseReturnValue

from domain.oauth.openid.keys import (
    LONGEST_ID_TOKEN,
    NOTICE,
    KeyRotation,
    NewKeyBody,
    list_key_lifecycle,
    rotate_keys,
)
from forms.keys import RotationForm
from web.access.decorators import administrator
from web.extensions import db
from web.http.work import work
from web.pages.form_pages import form_page
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
    """Create a new key, which becomes the signing key at the chosen time."""
    form = RotationForm()
    if form.carry_out(lambda: rotate_keys(work(), form.read(NewKeyBody))) is None:
        return _page(form)
    flash("Key created and published.")
    return redirect(url_for("admin.keys.index"))


def _page(form: RotationForm) -> ResponseReturnValue:
    found = list_key_lifecycle(session=db.session(), keyring=services().keyring, now=now())
    return form_page(
        "admin/keys/index.html",
        form,
        keys=found,
        rotations=KeyRotation,
        notice_period=NOTICE,
        longest=LONGEST_ID_TOKEN,
        key_set_url=f"{settings().base_url}/oauth/discovery/keys",
    )
