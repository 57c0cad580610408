"""/admin/applications: applications of the instance, and a list of its users'."""

from dataclasses import replace

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import Event, EventKind
from domain.database.list_queries import one_of, words
from domain.errors import InvalidError
from domain.oauth.clients import applications as domain
from domain.oauth.clients.directory import (
    ApplicationFilter,
    count_applications,
    page_of_applications,
)
from domain.oauth.clients.secrets import end_secret, list_secrets
from domain.oauth.clients.secrets import renew_secret as renew
from domain.oauth.clients.views import ApplicationView
from domain.oauth.clients.views import view as view_of
from domain.oauth.scopes import views
from forms.application import RenewalForm
from forms.instance_application import InstanceApplicationForm
from web.extensions import db
from web.http.access import administrator, get_current_user
from web.http.audit_events import record_event
from web.oauth.endpoint_urls import endpoints
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.sealing.one_time_secrets import keep_one_time_secret, take_one_time_secret
from web.services import now, services, settings

applications = Blueprint("applications", __name__, url_prefix="/applications")
_SECRET = "application secret"  # noqa: S105 - a name
_OWNERS = ("instance", "users")


@applications.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the applications of the instance, or of its users."""
    given = list_query("of", "search", *CURSORS)
    wanted = ApplicationFilter(
        is_instance_wide=one_of(given, "of", _OWNERS, "instance") == "instance",
        search=words(given, "search"),
    )
    found = page_of_applications(wanted, asked_slice(), session=db.session(), now=now())
    return render_template(
        "admin/applications/index.html",
        page=page_links(found),
        is_instance_wide=wanted.is_instance_wide,
        counts=count_applications(session=db.session()),
        query=wanted.search,
    )


@applications.route("/new", methods=["GET", "POST"])
@administrator
def new() -> ResponseReturnValue:
    """Register an application of the instance and show its credentials."""
    form = InstanceApplicationForm()
    if not form.validate_on_submit():
        return _form_page("new", form)
    try:
        registered = domain.register(
            replace(form.details, is_instance_wide=True),
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
@administrator
def show(application_id: int) -> ResponseReturnValue:
    """Show an application, with its secret right after its creation."""
    return _show_page(_get(application_id), RenewalForm())


@applications.route("/<int:application_id>/edit", methods=["GET", "POST"])
@administrator
def edit(application_id: int) -> ResponseReturnValue:
    """Change an application, its owner, and whether it is trusted."""
    application = _get(application_id)
    form = InstanceApplicationForm.of(application)
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
    return _back_to(application_id)


@applications.post("/<int:application_id>/renew_secret")
@administrator
def renew_secret(application_id: int) -> ResponseReturnValue:
    """Issue a new secret and show it; the old one stays valid for the chosen time."""
    application, form = _get(application_id), RenewalForm()
    if not form.validate_on_submit():
        return _show_page(application, form)
    keyring, grace_period = services().keyring, form.chosen
    secret = renew(
        application, session=db.session(), keyring=keyring, now=now(), grace_period=grace_period
    )
    _note(EventKind.SECRET_RENEWED, application, old_secret_ends=grace_period.words)
    return _show_secret(application_id, secret)


@applications.post("/<int:application_id>/secrets/<int:secret_id>/end", endpoint="end_secret")
@administrator
def end_old_secret(application_id: int, secret_id: int) -> ResponseReturnValue:
    """Revoke the older one of two secrets."""
    application = _get(application_id)
    end_secret(application, secret_id, session=db.session())
    _note(EventKind.APPLICATION_CHANGED, application, ended="the older secret")
    flash("The older secret does not work any more.")
    return _back_to(application_id)


@applications.route("/<int:application_id>/delete", methods=["GET"])
@administrator
def delete(application_id: int) -> ResponseReturnValue:
    """Ask for confirmation of the removal."""
    seen = view_of(_get(application_id), session=db.session(), now=now())
    return render_template("admin/applications/delete.html", application=seen)


@applications.post("/<int:application_id>/delete")
@administrator
def remove(application_id: int) -> ResponseReturnValue:
    """Delete the application with all its tokens."""
    application = _get(application_id)
    of = None if application.is_instance_wide else "users"
    _note(EventKind.APPLICATION_REMOVED, application)
    domain.remove(application, session=db.session())
    flash(f"The application {application.name} and all its tokens are deleted.")
    return redirect(url_for("admin.applications.index", of=of))


def _get(application_id: int) -> domain.ApplicationRow:
    return domain.get_any(application_id, session=db.session())


def _note(kind: EventKind, application: domain.ApplicationRow, **more: object) -> None:
    """Record an event, which the owner, if any, can read as well."""
    owner_id = None if application.is_instance_wide else application.owner_id
    details = {"application_id": application.uid, "trusted": application.trusted, **more}
    record_event(Event(kind=kind, user_id=owner_id, subject=application.name, details=details))


def _show_page(application: domain.ApplicationRow, renewal: RenewalForm) -> ResponseReturnValue:
    page = render_template(
        "admin/applications/show.html",
        application=view_of(application, session=db.session(), now=now()),
        scopes=views(application.scopes.split()),
        secrets=list_secrets(application.id, session=db.session(), now=now()),
        secret=take_one_time_secret(_SECRET, application.id),
        renewal=renewal,
        endpoints=endpoints(),
        refresh_replay_seconds=settings().refresh_replay_seconds,
    )
    return page, 422 if renewal.errors else 200, {"Cache-Control": "no-store"}


def _form_page(
    name: str, form: InstanceApplicationForm, application: ApplicationView | None = None
) -> ResponseReturnValue:
    page = render_template(
        f"admin/applications/{name}.html",
        form=form,
        application=application,
        scope_choices=form.scope_choices,
    )
    return page, 422 if form.errors else 200


def _show_secret(application_id: int, secret: str) -> ResponseReturnValue:
    keep_one_time_secret(_SECRET, application_id, secret)
    return _back_to(application_id)


def _back_to(application_id: int) -> ResponseReturnValue:
    return redirect(url_for("admin.applications.show", application_id=application_id))
