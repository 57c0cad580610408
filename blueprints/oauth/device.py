"""Pages at /oauth/device for entering a user code and approving a device (RFC 8628, 3.3)."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.access.scopes import describe_scopes as scope_views
from domain.access.scopes import filter_grantable_scopes
from domain.core.errors import InvalidError, NotFoundError, TooManyAttemptsError
from domain.oauth import device_authorizations
from domain.oauth.clients.application_lists import get_application_overview
from domain.oauth.device_authorizations import (
    MAX_TYPED_CODE_LENGTH,
    DeviceDecision,
    DeviceRequest,
    DisplayedDeviceRequest,
    format_user_code,
    parse_user_code,
)
from forms.device import UserCodeForm
from web.access.decorators import get_current_user, open_to_anyone, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM_MESSAGE, redirect_outdated_form
from web.http.public_urls import build_public_url
from web.oauth import build_oauth_context, build_submitted_approval, requires_recent_sign_in
from web.pages.qr_codes import build_qr_code
from web.sealing.forms import seal_device_form, unseal_device_form
from web.services import get_current_time, get_settings

device = PageBlueprint("device", __name__, url_prefix="/oauth/device", leads_to_applications=True)


@device.before_request
def check_device_grant_enabled() -> None:
    """Reject all requests if the instance does not offer the device grant.

    Raise NotFoundError in this case.
    """
    if not get_settings().oauth2_device_grant_flow:
        raise NotFoundError("The device flow is turned off on this instance.")


@device.get("")
@sign_in_required
def enter() -> ResponseReturnValue:
    """Show the form for the user code.

    A code in the URL is prefilled but not submitted.
    """
    typed = request.args.get("user_code", "")[:MAX_TYPED_CODE_LENGTH]
    code = parse_user_code(typed)
    return _render_code_form(
        UserCodeForm(formdata=None, user_code=format_user_code(code) if code else typed)
    )


def _redirect_to_code_form() -> ResponseReturnValue:
    """Redirect to the form with the user code prefilled, without storing a decision."""
    flash(OUTDATED_FORM_MESSAGE, "warning")
    return redirect(_build_code_url(), code=303)


def _build_code_url() -> str:
    """Return the URL of the form, with the submitted user code."""
    code = parse_user_code(request.form.get("user_code", ""))
    return url_for("device.enter", user_code=format_user_code(code) if code else None)


@device.post("")
@sign_in_required
@redirect_outdated_form(_redirect_to_code_form)
def open_request() -> ResponseReturnValue:
    """Show the device request with the submitted user code."""
    form = UserCodeForm()
    if not form.validate_on_submit():
        return _render_code_form(form), 422
    try:
        asked = device_authorizations.open_device_request(
            form.user_code.data or "", user_id=get_current_user().id, context=build_oauth_context()
        )
    except (InvalidError, TooManyAttemptsError) as error:
        return _render_error(form, error)
    return _render_device_request(asked)


@device.get("/phone")
@open_to_anyone
def ask_for_phone() -> ResponseReturnValue:
    """Show the form for continuing on a phone with a user code.

    A URL cannot prefill the code on this form. Users who scan a QR code do not compare the code
    with the code on the device. Therefore, the QR code is shown only after the user has typed the
    code.
    """
    return _render_phone_form(UserCodeForm(formdata=None))


def _redirect_to_phone_form() -> ResponseReturnValue:
    flash(OUTDATED_FORM_MESSAGE, "warning")
    return redirect(url_for("device.ask_for_phone"), code=303)


@device.post("/phone")
@open_to_anyone
@redirect_outdated_form(_redirect_to_phone_form)
def show_to_phone() -> ResponseReturnValue:
    """Show a QR code for the URL that contains the user code, without looking up the code."""
    form = UserCodeForm()
    if not form.validate_on_submit():
        return _render_phone_form(form), 422
    code = parse_user_code(form.user_code.data or "")
    if code is None:
        message = "A code has eight letters. Compare it with the code on the device."
        form.add_error("user_code", message)
        return _render_phone_form(form), 422
    url = build_public_url(url_for("device.enter", user_code=format_user_code(code)))
    return render_template("device/qr_code.html", url=url, picture=build_qr_code(url))


@device.get("/decision")
@sign_in_required
def redirect_after_sign_in() -> ResponseReturnValue:
    """Redirect to the code form after a new sign-in has interrupted the decision."""
    return redirect(url_for("device.enter"))


@device.post("/decision")
@open_to_anyone
@redirect_outdated_form(_redirect_to_code_form)
def decide() -> ResponseReturnValue:
    """Store the user's decision about a device.

    Every button except Approve denies the request.
    """
    if not current_user.is_authenticated:
        return redirect(url_for("sessions.sign_in", next=_build_code_url()))
    decision = _read_device_decision()
    if requires_recent_sign_in():
        return redirect(url_for("sessions.sign_in", again="yes", next=_build_code_url()))
    try:
        asked = unseal_device_form(
            request.form.get("request", ""), sign_in_id=get_current_user().sign_in_id
        )
        if asked is None:
            return _redirect_to_code_form()
        name = device_authorizations.decide_device_request(
            asked, decision, build_submitted_approval(), context=build_oauth_context()
        )
    except InvalidError as error:
        return _render_error(UserCodeForm(formdata=None), error)
    return render_template(f"device/{decision.value}.html", application_name=name)


def _read_device_decision() -> DeviceDecision:
    is_yes = request.form.get("decision") == DeviceDecision.APPROVE.value
    return DeviceDecision.APPROVE if is_yes else DeviceDecision.DENY


def _render_phone_form(form: UserCodeForm) -> str:
    return render_template("device/continue_on_phone.html", form=form)


def _render_code_form(form: UserCodeForm) -> str:
    return render_template("device/enter_code.html", form=form)


def _render_error(
    form: UserCodeForm, error: InvalidError | TooManyAttemptsError
) -> ResponseReturnValue:
    """Show the error next to the code field.

    The function returns the error page instead of raising an error, so that the attempt count is
    committed.
    """
    form.add_error("user_code", str(error))
    if isinstance(error, TooManyAttemptsError):
        return _render_code_form(form), 429, {"Retry-After": str(error.retry_after)}
    is_decided = isinstance(error, device_authorizations.AlreadyDecidedError)
    return _render_code_form(form), 409 if is_decided else 422


def _render_device_request(device_request: DeviceRequest) -> str:
    return render_template(
        "device/request.html",
        asked=device_request,
        application=get_application_overview(
            device_request.application_id, session=db.session(), now=get_current_time()
        ),
        scopes=scope_views(
            filter_grantable_scopes(
                " ".join(device_request.scopes), may_administer=get_current_user().is_admin
            ).split()
        ),
        request_token=seal_device_form(
            DisplayedDeviceRequest(
                id=device_request.id,
                user_code=device_request.user_code,
                scopes=device_request.scopes,
            ),
            sign_in_id=get_current_user().sign_in_id,
        ),
    )
