"""Pages of an application, for its owner and for administrators."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.scopes import views
from domain.audit.events import Event, EventKind
from domain.errors import InvalidError
from domain.oauth.clients import applications as domain
from domain.oauth.clients.applications import ApplicationView
from domain.oauth.clients.secrets import end_secret, list_secrets, renew_secret
from domain.oauth.clients.views import ApplicationPage, get_page
from domain.oauth.setting_up.progress import Viewer, progress_of
from domain.oauth.setting_up.refusals import list_refusals
from forms.application import ApplicationForm, RenewalForm
from web.access.marks import get_current_user
from web.extensions import db
from web.http.audit_events import record_event
from web.oauth.endpoint_urls import endpoints
from web.sealing.one_time_secrets import keep_one_time_secret, take_one_time_secret
from web.services import now, services, settings

_SECRET = "application secret"  # noqa: S105 - a name


@dataclass(frozen=True, kw_only=True)
class ApplicationPages:
    """The steps that the pages of both blueprints share: each view is one of them."""

    #: The name of the blueprint, with those around it.
    endpoint: str
    form: type[ApplicationForm]
    #: Returns an application that the user may change, or raises NotFoundError.
    get: Callable[[int], ApplicationView]
    #: Registers applications of the instance, and shows whose each one is.
    is_administration: bool

    def new(self) -> ResponseReturnValue:
        """Register an application and show its credentials."""
        form = self.form()
        if not form.validate_on_submit():
            return self._form_page("new", form)
        try:
            registered = domain.register(
                replace(form.details, is_instance_wide=self.is_administration),
                owner_id=get_current_user().id,
                session=db.session(),
                keyring=services().keyring,
                now=now(),
                require_https=settings().require_https_redirect_uris,
            )
        except InvalidError as error:
            _object_to(form, error)
            return self._form_page("new", form)
        self._record(EventKind.APPLICATION_REGISTERED, registered.application)
        return self._show_secret(registered.application.id, registered.secret)

    def show(self, application_id: int) -> ResponseReturnValue:
        """Show an application, with its secret right after its creation or renewal."""
        return self._show_page(self.get(application_id), RenewalForm())

    def setup(self, application_id: int) -> ResponseReturnValue:
        """Show only how far an application has come, for a page that waits for it."""
        application = self.get(application_id)
        page = self._rendered("_setup", application=application, **self._setup_of(application))
        return page, 200, {"Cache-Control": "no-store"}

    def edit(self, application_id: int) -> ResponseReturnValue:
        """Change an application."""
        application = self.get(application_id)
        form = self.form.of(application)
        seen = _page_of(application_id)
        if not form.validate_on_submit():
            return self._form_page("edit", form, seen)
        https = settings().require_https_redirect_uris
        try:
            changed = domain.change(
                application_id, form.details, session=db.session(), require_https=https
            )
        except InvalidError as error:
            _object_to(form, error)
            return self._form_page("edit", form, seen)
        self._record(EventKind.APPLICATION_CHANGED, changed.application)
        flash("Application saved.")
        return self._back_to(application_id)

    def renew_secret(self, application_id: int) -> ResponseReturnValue:
        """Issue a new secret and show it; the old one stays valid for the chosen time."""
        application, form = self.get(application_id), RenewalForm()
        if not form.validate_on_submit():
            return self._show_page(application, form)
        grace_period = form.chosen
        secret = renew_secret(
            application_id,
            session=db.session(),
            keyring=services().keyring,
            now=now(),
            grace_period=grace_period,
        )
        self._record(EventKind.SECRET_RENEWED, application, old_secret_ends=grace_period.words)
        return self._show_secret(application_id, secret)

    def end_old_secret(self, application_id: int, secret_id: int) -> ResponseReturnValue:
        """Revoke the older one of two secrets."""
        application = self.get(application_id)
        end_secret(application_id, secret_id, session=db.session())
        self._record(EventKind.APPLICATION_CHANGED, application, ended="the older secret")
        flash("The older secret no longer works.")
        return self._back_to(application_id)

    def delete(self, application_id: int) -> ResponseReturnValue:
        """Ask for confirmation of the removal."""
        self.get(application_id)
        return self._rendered("delete", application=_page_of(application_id))

    def remove(self, application_id: int) -> ResponseReturnValue:
        """Delete an application with all its tokens."""
        application = self.get(application_id)
        self._record(EventKind.APPLICATION_REMOVED, application)
        domain.remove(application_id, session=db.session())
        flash(f"The application {application.name} and all its tokens were deleted.")
        is_of_users = self.is_administration and not application.is_instance_wide
        of = "users" if is_of_users else None
        return redirect(url_for(f"{self.endpoint}.index", of=of))

    def _record(self, kind: EventKind, application: ApplicationView, **more: object) -> None:
        """Record an event, which the owner, if any, can read as well."""
        owner_id = None if application.is_instance_wide else application.owner_id
        details: dict[str, object] = {"application_id": application.uid}
        if self.is_administration:
            details["trusted"] = application.trusted
        if application.allowed_grants:
            details["allowed_grants"] = " ".join(application.allowed_grants)
        details |= more
        record_event(Event(kind=kind, user_id=owner_id, subject=application.name, details=details))

    def _show_page(self, application: ApplicationView, renewal: RenewalForm) -> ResponseReturnValue:
        page = self._rendered(
            "show",
            application=_page_of(application.id),
            scopes=views(application.scopes),
            secrets=list_secrets(application.id, session=db.session(), now=now()),
            secret=take_one_time_secret(_SECRET, application.id),
            renewal=renewal,
            endpoints=endpoints(),
            **self._setup_of(application),
            refresh_replay_seconds=settings().refresh_replay_seconds,
        )
        return page, 422 if renewal.errors else 200, {"Cache-Control": "no-store"}

    def _setup_of(self, application: ApplicationView) -> dict[str, object]:
        viewer = Viewer(user_id=get_current_user().id, sees_everybody=self.is_administration)
        session = db.session()
        return {
            "progress": progress_of(application, viewer=viewer, session=session, now=now()),
            "refused_requests": list_refusals(application.id, session=session),
        }

    def _form_page(
        self, name: str, form: ApplicationForm, application: ApplicationPage | None = None
    ) -> ResponseReturnValue:
        page = self._rendered(
            name, form=form, application=application, scope_choices=form.scope_choices
        )
        return page, 422 if form.errors else 200

    def _rendered(self, name: str, **context: object) -> str:
        return render_template(
            f"applications/{name}.html",
            endpoint=self.endpoint,
            is_administration=self.is_administration,
            **context,
        )

    def _show_secret(self, application_id: int, secret: str) -> ResponseReturnValue:
        keep_one_time_secret(_SECRET, application_id, secret)
        return self._back_to(application_id)

    def _back_to(self, application_id: int) -> ResponseReturnValue:
        return redirect(url_for(f"{self.endpoint}.show", application_id=application_id))


def _object_to(form: ApplicationForm, error: InvalidError) -> None:
    for sentence in error.sentences:
        form.object_to(error.field, sentence)


def _page_of(application_id: int) -> ApplicationPage:
    return get_page(application_id, session=db.session(), now=now())
