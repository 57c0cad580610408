"""The user settings page 'applications': register, show, change, renew, delete."""

from flask import Blueprint, flash, redirect, render_template, session, url_for
from flask.typing import ResponseReturnValue

from domain.errors import InvalidError
from domain.oauth import applications as domain
from domain.oauth.applications import ApplicationDetails, ApplicationView
from domain.oauth.scopes import REGISTRABLE, views
from forms.application import ApplicationForm
from web.access import signed_in, visitor
from web.extensions import db
from web.services import now, services, settings

applications = Blueprint("applications", __name__, url_prefix="/-/user_settings/applications")
#: A secret crosses one redirect in the session, encrypted, and is then gone.
_SHOWN_ONCE = "application_secret"


@applications.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the visitor's applications."""
    mine = domain.list_own(visitor().id, session=db.session(), now=now())
    return render_template("applications/index.html", applications=mine)


@applications.route("/new", methods=["GET", "POST"])
@signed_in
def new() -> ResponseReturnValue:
    """Register an application and show its credentials."""
    form = ApplicationForm()
    if not form.validate_on_submit():
        return _form_page("new", form)
    try:
        registered = domain.register(
            _details(form),
            owner_id=visitor().id,
            session=db.session(),
            keyring=services().keyring,
            now=now(),
            require_https=settings().require_https_redirect_uris,
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page("new", form)
    return _show_secret(registered.application.id, registered.secret)


@applications.get("/<int:application_id>")
@signed_in
def show(application_id: int) -> ResponseReturnValue:
    """Show an application; its secret only right after it was made."""
    application = _own(application_id)
    shown_id, sealed = session.pop(_SHOWN_ONCE, (None, ""))
    base = settings().base_url
    page = render_template(
        "applications/show.html",
        application=domain.view(application, session=db.session(), now=now()),
        scopes=views(application.scopes.split()),
        secret=services().keyring.decrypt(sealed) if shown_id == application_id else None,
        metadata={
            "authorize": f"{base}/oauth/authorize",
            "token": f"{base}/oauth/token",
            "device": f"{base}/oauth/authorize_device"
            if settings().oauth2_device_grant_flow
            else None,
            "revoke": f"{base}/oauth/revoke",
            "info": f"{base}/oauth/token/info",
            "discovery": f"{base}/.well-known/oauth-authorization-server",
        },
    )
    return page, 200, {"Cache-Control": "no-store"}


@applications.route("/<int:application_id>/edit", methods=["GET", "POST"])
@signed_in
def edit(application_id: int) -> ResponseReturnValue:
    """Change an application."""
    application = _own(application_id)
    form = ApplicationForm(
        name=application.name,
        redirect_uris="\n".join(application.redirect_uris),
        confidential=application.confidential,
        require_pkce=application.require_pkce,
        refresh_for_devices=application.refresh_for_devices,
        scopes=application.scopes.split(),
    )
    seen = domain.view(application, session=db.session(), now=now())
    if not form.validate_on_submit():
        return _form_page("edit", form, application=seen)
    try:
        domain.change(
            application, _details(form), require_https=settings().require_https_redirect_uris
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page("edit", form, application=seen)
    flash("The application is saved.")
    return redirect(url_for("applications.show", application_id=application_id))


@applications.post("/<int:application_id>/renew_secret")
@signed_in
def renew_secret(application_id: int) -> ResponseReturnValue:
    """Replace the secret and show the new one."""
    secret = domain.renew_secret(
        _own(application_id), session=db.session(), keyring=services().keyring, now=now()
    )
    return _show_secret(application_id, secret)


@applications.route("/<int:application_id>/delete", methods=["GET"])
@signed_in
def delete(application_id: int) -> ResponseReturnValue:
    """Ask whether the application shall really go."""
    seen = domain.view(_own(application_id), session=db.session(), now=now())
    return render_template("applications/delete.html", application=seen)


@applications.post("/<int:application_id>/delete")
@signed_in
def remove(application_id: int) -> ResponseReturnValue:
    """Delete the application with all its tokens."""
    application = _own(application_id)
    domain.remove(application, session=db.session())
    flash(f"The application {application.name} and all its tokens are deleted.")
    return redirect(url_for("applications.index"))


def _own(application_id: int) -> domain.ApplicationRow:
    return domain.get_own(application_id, owner_id=visitor().id, session=db.session())


def _details(form: ApplicationForm) -> ApplicationDetails:
    return ApplicationDetails(
        name=form.name.data or "",
        redirect_uris=form.uris,
        scopes=" ".join(form.scopes.data or ()),
        confidential=form.confidential.data,
        require_pkce=form.require_pkce.data,
        refresh_for_devices=form.refresh_for_devices.data,
    )


def _form_page(
    name: str, form: ApplicationForm, application: ApplicationView | None = None
) -> ResponseReturnValue:
    page = render_template(
        f"applications/{name}.html",
        form=form,
        application=application,
        scope_choices=views(REGISTRABLE),
    )
    return page, 422 if form.errors else 200


def _show_secret(application_id: int, secret: str) -> ResponseReturnValue:
    session[_SHOWN_ONCE] = (application_id, services().keyring.encrypt(secret))
    return redirect(url_for("applications.show", application_id=application_id))
