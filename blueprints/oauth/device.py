"""Pages at /oauth/device for a device's user code and the decision (RFC 8628, 3.3)."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.access.scopes import grantable
from domain.access.scopes import views as scope_views
from domain.core.errors import InvalidError, NotFoundError, TooManyAttemptsError
from domain.oauth import devices
from domain.oauth.clients.directory import get_page
from domain.oauth.devices import (
    LONGEST_TYPED,
    Decision,
    DeviceRequest,
    ShownRequest,
    read_user_code,
    shown,
)
from forms.device import UserCodeForm
from web.access.decorators import get_current_user, open_to_anyone, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM, leads_back
from web.http.public_urls import public_url
from web.oauth import decided_approval, needs_new_proof, oauth_context
from web.pages.qr_codes import qr_code
from web.sealing.forms import open_device_form, seal_device_form
from web.services import now, settings

device = PageBlueprint("device", __name__, url_prefix="/oauth/device", leads_to_applications=True)


@device.before_request
def only_while_it_is_on() -> None:
    """Return status 404 if the instance does not offer the device grant."""
    if not settings().oauth2_device_grant_flow:
        raise NotFoundError("The device flow is turned off on this instance.")


@device.get("")
@signed_in
def enter() -> ResponseReturnValue:
    """Show the form for the user code; a code in the URL is filled in but not submitted."""
    typed = request.args.get("user_code", "")[:LONGEST_TYPED]
    code = read_user_code(typed)
    return _code_page(UserCodeForm(formdata=None, user_code=shown(code) if code else typed))


def _back_to_code() -> ResponseReturnValue:
    """Redirect to the form with the user code filled in, without a decision."""
    flash(OUTDATED_FORM, "warning")
    return redirect(_code_url(), code=303)


def _code_url() -> str:
    """Return the URL of the form, with the user code of the submitted form."""
    code = read_user_code(request.form.get("user_code", ""))
    return url_for("device.enter", user_code=shown(code) if code else None)


@device.post("")
@signed_in
@leads_back(_back_to_code)
def open_request() -> ResponseReturnValue:
    """Show the request of the device with this user code."""
    form = UserCodeForm()
    if not form.validate_on_submit():
        return _code_page(form), 422
    try:
        asked = devices.open_request(
            form.user_code.data or "", user_id=get_current_user().id, context=oauth_context()
        )
    except (InvalidError, TooManyAttemptsError) as error:
        return _refused(form, error)
    return _question(asked)


@device.get("/phone")
@open_to_anyone
def ask_for_phone() -> ResponseReturnValue:
    """Show the form for a user code to continue on a phone; the URL does not fill it in.

    Users who scan a QR code do not compare the code with the device. Therefore no link leads to a
    QR code: users see one only after they type the code of the device in front of them.
    """
    return _phone_page(UserCodeForm(formdata=None))


def _back_to_phone() -> ResponseReturnValue:
    flash(OUTDATED_FORM, "warning")
    return redirect(url_for("device.ask_for_phone"), code=303)


@device.post("/phone")
@open_to_anyone
@leads_back(_back_to_phone)
def show_to_phone() -> ResponseReturnValue:
    """Show a QR code with the URL of the user code, without looking up the code."""
    form = UserCodeForm()
    if not form.validate_on_submit():
        return _phone_page(form), 422
    code = read_user_code(form.user_code.data or "")
    if code is None:
        message = "A code has eight letters. Compare it with the code on the device."
        form.object_to("user_code", message)
        return _phone_page(form), 422
    url = public_url(url_for("device.enter", user_code=shown(code)))
    return render_template("device/scan.html", url=url, picture=qr_code(url))


@device.get("/decision")
@signed_in
def begin_again() -> ResponseReturnValue:
    """Redirect to the first page if a new sign-in interrupted the decision."""
    return redirect(url_for("device.enter"))


@device.post("/decision")
@open_to_anyone
@leads_back(_back_to_code)
def decide() -> ResponseReturnValue:
    """Store the decision; every button except Approve denies the request."""
    if not current_user.is_authenticated:
        return redirect(url_for("sessions.sign_in", next=_code_url()))
    decision = _pressed()
    if needs_new_proof():
        return redirect(url_for("sessions.sign_in", again="yes", next=_code_url()))
    try:
        asked = open_device_form(
            request.form.get("request", ""), sign_in_id=get_current_user().sign_in_id
        )
        if asked is None:
            return _back_to_code()
        name = devices.decide(asked, decision, decided_approval(), context=oauth_context())
    except InvalidError as error:
        return _refused(UserCodeForm(formdata=None), error)
    return render_template(f"device/{decision.value}.html", application_name=name)


def _pressed() -> Decision:
    is_yes = request.form.get("decision") == Decision.APPROVE.value
    return Decision.APPROVE if is_yes else Decision.DENY


def _phone_page(form: UserCodeForm) -> str:
    return render_template("device/phone.html", form=form)


def _code_page(form: UserCodeForm) -> str:
    return render_template("device/enter.html", form=form)


def _refused(form: UserCodeForm, error: InvalidError | TooManyAttemptsError) -> ResponseReturnValue:
    """Show the error at the field.

    The error is returned and not raised, so that the count of attempts is committed.
    """
    form.object_to("user_code", str(error))
    if isinstance(error, TooManyAttemptsError):
        return _code_page(form), 429, {"Retry-After": str(error.retry_after)}
    return _code_page(form), 409 if isinstance(error, devices.DecidedError) else 422


def _question(asked: DeviceRequest) -> str:
    return render_template(
        "device/request.html",
        asked=asked,
        application=get_page(asked.application_id, session=db.session(), now=now()),
        scopes=scope_views(
            grantable(" ".join(asked.scopes), may_administer=get_current_user().is_admin).split()
        ),
        request_token=seal_device_form(
            ShownRequest(id=asked.id, user_code=asked.user_code, scopes=asked.scopes),
            sign_in_id=get_current_user().sign_in_id,
        ),
    )
