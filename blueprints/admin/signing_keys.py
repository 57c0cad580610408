"""The /admin/keys page: the keys that sign ID tokens."""

from flask import Blueprint, flash, redirect, url_for
from flask.typing import ResponseReturnValue

from domain.oauth.openid.signing_keys import (
    KEY_NOTICE_PERIOD,
    MAX_ID_TOKEN_LIFETIME,
    KeyRotation,
    NewKeyBody,
    list_key_statuses,
    rotate_keys,
)
from forms.signing_keys import SigningKeyRotationForm
from web.access.decorators import administrator_required
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.services import get_current_time, get_services, get_settings

keys = Blueprint("keys", __name__, url_prefix="/keys")


@keys.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """Show the published keys, and the period in which each key is used."""
    return _render_page(SigningKeyRotationForm())


@keys.post("/rotate")
@administrator_required
def rotate() -> ResponseReturnValue:
    """Create a new key, which becomes the signing key at the chosen time."""
    form = SigningKeyRotationForm()
    if (
        form.run_if_valid(
            lambda: rotate_keys(get_unit_of_work(), form.build_entered_body(NewKeyBody))
        )
        is None
    ):
        return _render_page(form)
    flash("Key created and published.")
    return redirect(url_for("admin.keys.index"))


def _render_page(form: SigningKeyRotationForm) -> ResponseReturnValue:
    found = list_key_statuses(
        session=db.session(), keyring=get_services().keyring, now=get_current_time()
    )
    return render_form_page(
        "admin/keys/index.html",
        form,
        keys=found,
        rotations=KeyRotation,
        notice_period=KEY_NOTICE_PERIOD,
        longest=MAX_ID_TOKEN_LIFETIME,
        key_set_url=f"{get_settings().base_url}/oauth/discovery/keys",
    )
