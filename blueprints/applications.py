"""The user settings page 'applications': register, show, change, renew, delete."""

from flask import Blueprint, flash, redirect, render_template, session, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import Event, EventKind
from domain.errors import InvalidError
from domain.oauth.clients import applications as domain
from domain.oauth.clients.secrets import end_secret, list_secrets
from domain.oauth.clients.secrets import renew_secret as renew
from domain.oauth.clients.views import ApplicationView, list_own
from domain.oauth.clients.views import view as view_of
from domain.oauth.scopes import views
from forms.application import ApplicationForm, RenewalForm
from web.extensions import db
from web.http.access import get_current_user, signed_in
from web.http.audit_events import record_event
from web.oauth.endpoint_urls import endpoints
from web.services import now, services, settings

applications = Blueprint("applications", __name__, url_prefix="/-/user_settings/applications")
#: A secret crosses one redirect in the session, encrypted, and is then gone.
_SHOWN_ONCE = "application_secret"


@applications.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the visitor's applications."""
    mine = list_own(get_current_user().id, session=db.session(), now=now())
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
            form.details,
            owner_id=get_current_user().id,
            session=db.session(),
            keyring=services().keyring,
            now=now(),
            require_https=settings().require_https_redirect_uris,
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page("new", form)
    _note(EventKind.APPLICATION_REGISTERED, registered.application)
    return _show_secret(registered.application.id, registered.secret)


@applications.get("/<int:application_id>")
@signed_in
def show(application_id: int) -> ResponseReturnValue:
    """Show an application; its secret only right after it was made."""
    return _show_page(_own(application_id), RenewalForm())


@applications.route("/<int:application_id>/edit", methods=["GET", "POST"])
@signed_in
def edit(application_id: int) -> ResponseReturnValue:
    """Change an application."""
    application = _own(application_id)
    form = ApplicationForm.of(application)
    seen = view_of(application, session=db.session(), now=now())
    if not form.validate_on_submit():
        return _form_page("edit", form, application=seen)
    https = settings().require_https_redirect_uris
    try:
        domain.change(application, form.details, require_https=https)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page("edit", form, application=seen)
    _note(EventKind.APPLICATION_CHANGED, application)
    flash("The application is saved.")
    return redirect(url_for("applications.show", application_id=application_id))


@applications.post("/<int:application_id>/renew_secret")
@signed_in
def renew_secret(application_id: int) -> ResponseReturnValue:
    """Make a new secret and show it; the old one stays good for as long as was chosen."""
    application, form = _own(application_id), RenewalForm()
    if not form.validate_on_submit():
        return _show_page(application, form)
    keyring, grace_period = services().keyring, form.chosen
    secret = renew(
        application, session=db.session(), keyring=keyring, now=now(), grace_period=grace_period
    )
    _note(EventKind.SECRET_RENEWED, application, old_secret_ends=grace_period.words)
    return _show_secret(application_id, secret)


@applications.post("/<int:application_id>/secrets/<int:secret_id>/end", endpoint="end_secret")
@signed_in
def end_old_secret(application_id: int, secret_id: int) -> ResponseReturnValue:
    """End the older one of two secrets before its time."""
    application = _own(application_id)
    end_secret(application, secret_id, session=db.session())
    _note(EventKind.APPLICATION_CHANGED, application, ended="the older secret")
    flash("The older secret does not work any more.")
    return redirect(url_for("applications.show", application_id=application_id))


@applications.route("/<int:application_id>/delete", methods=["GET"])
@signed_in
def delete(application_id: int) -> ResponseReturnValue:
    """Ask for confirmation before the application is deleted."""
    seen = view_of(_own(application_id), session=db.session(), now=now())
    return render_template("applications/delete.html", application=seen)


@applications.post("/<int:application_id>/delete")
@signed_in
def remove(application_id: int) -> ResponseReturnValue:
    """Delete the application with all its tokens."""
    application = _own(application_id)
    _note(EventKind.APPLICATION_REMOVED, application)
    domain.remove(application, session=db.session())
    flash(f"The application {application.name} and all its tokens are deleted.")
    return redirect(url_for("applications.index"))


def _own(application_id: int) -> domain.ApplicationRow:
    return domain.get_own(application_id, owner_id=get_current_user().id, session=db.session())


def _note(kind: EventKind, application: domain.ApplicationRow, **more: str) -> None:
    details = {"application_id": application.uid, **more}
    record_event(
        Event(kind=kind, user_id=get_current_user().id, subject=application.name, details=details)
    )


def _show_page(application: domain.ApplicationRow, renewal: RenewalForm) -> ResponseReturnValue:
    shown_id, sealed = session.pop(_SHOWN_ONCE, (None, ""))
    page = render_template(
        "applications/show.html",
        application=view_of(application, session=db.session(), now=now()),
        scopes=views(application.scopes.split()),
        secrets=list_secrets(application.id, session=db.session(), now=now()),
        secret=services().keyring.decrypt(sealed) if shown_id == application.id else None,
        renewal=renewal,
        endpoints=endpoints(),
        refresh_replay_seconds=settings().refresh_replay_seconds,
    )
    return page, 422 if renewal.errors else 200, {"Cache-Control": "no-store"}


def _form_page(
    name: str, form: ApplicationForm, application: ApplicationView | None = None
) -> ResponseReturnValue:
    page = render_template(
        f"applications/{name}.html",
        form=form,
        application=application,
        scope_choices=form.scope_choices,
    )
    return page, 422 if form.errors else 200


def _show_secret(application_id: int, secret: str) -> ResponseReturnValue:
    session[_SHOWN_ONCE] = (application_id, services().keyring.encrypt(secret))
    return redirect(url_for("applications.show", application_id=application_id))
