"""Application pages of users, under /-/user_settings, and the steps shared with administration."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.scopes import views
from domain.oauth.applications import actions
from domain.oauth.applications.people import page_of_people
from domain.oauth.applications.refusals import Viewer, list_refusals, progress_of
from domain.oauth.applications.removed_scopes import find_removed_scopes
from domain.oauth.applications.types import ApplicationWithSecret, OwnApplicationBody, RenewalBody
from domain.oauth.clients.allowed_groups import paths_of
from domain.oauth.clients.applications import get_own
from domain.oauth.clients.directory import get_page, list_own
from domain.oauth.clients.secrets import list_secrets, rotation_of
from domain.oauth.clients.service_accounts import find_service_account
from domain.oauth.clients.types import ApplicationPage, ApplicationView
from domain.oauth.grants.client_credentials import FOR_MACHINES
from forms.applications import ApplicationForm, RenewalForm
from web.access.decorators import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import Mark, PageBlueprint
from web.http.work import work
from web.oauth import endpoints
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links
from web.pages.templating import pluralize
from web.sealing.sealer import keep_one_time_secret, take_one_time_secret
from web.services import now, settings

_SECRET = "application secret"  # noqa: S105 - a name


@dataclass(frozen=True, kw_only=True)
class ApplicationPages:
    """The views that the blueprints of users and administrators share."""

    #: Name of the blueprint, including its parent blueprints.
    endpoint: str
    form: type[ApplicationForm]
    #: Function that returns an application that the user may change, or raises NotFoundError.
    get: Callable[[int], ApplicationView]
    #: True if the pages register applications of the instance and show the owner of each
    #: application.
    is_administration: bool

    def bind(self, blueprint: Blueprint, mark: Mark) -> None:
        """Add the URLs of these pages to a blueprint, with an access decorator."""
        one = "/<int:application_id>"
        for rule, view, methods in (
            ("/new", self.new, ["GET", "POST"]),
            (one, self.show, ["GET"]),
            (f"{one}/setup", self.setup, ["GET"]),
            (f"{one}/people", self.people, ["GET"]),
            (f"{one}/edit", self.edit, ["GET", "POST"]),
            (f"{one}/renew_secret", self.renew_secret, ["POST"]),
            (f"{one}/secrets/<int:secret_id>/end", self.end_secret, ["POST"]),
            (f"{one}/removed_scopes/end", self.end_removed_scopes, ["POST"]),
            (f"{one}/delete", self.delete, ["GET"]),
            (f"{one}/delete", self.remove, ["POST"]),
        ):
            blueprint.add_url_rule(rule, view.__name__, mark(view), methods=methods)

    def new(self) -> ResponseReturnValue:
        """Register an application and show its credentials."""
        form = self.form()
        more = {"is_instance_wide": True} if self.is_administration else {}
        made = form.carry_out(
            lambda: actions.register_application(work(), form.read(OwnApplicationBody, **more))
        )
        if made is None:
            return self._form_page("new", form)
        return self._show_secret(made)

    def show(self, application_id: int) -> ResponseReturnValue:
        """Show an application, with its secret if it was just created or renewed."""
        return self._show_page(self.get(application_id), RenewalForm())

    def setup(self, application_id: int) -> ResponseReturnValue:
        """Show only the setup progress of an application, for a page that polls it."""
        application = self.get(application_id)
        page = self._rendered("_setup", application=application, **self._setup_of(application))
        return page, 200, {"Cache-Control": "no-store"}

    def people(self, application_id: int) -> ResponseReturnValue:
        """List the users of an application."""
        list_query(*CURSORS)
        application = self.get(application_id)
        page = page_of_people(
            application.id,
            asked_slice(),
            viewer=self._viewer(),
            session=db.session(),
            now=now(),
        )
        return self._rendered("people", application=application, page=page_links(page))

    def edit(self, application_id: int) -> ResponseReturnValue:
        """Change an application."""
        application = self.get(application_id)
        form = self.form.of(application, _groups_of(application))
        seen = _page_of(application_id)
        if not form.carry_out(
            lambda: actions.change_application(work(), application_id, form.change())
        ):
            return self._form_page("edit", form, seen)
        flash("Application saved.")
        return self._back_to(application_id)

    def renew_secret(self, application_id: int) -> ResponseReturnValue:
        """Issue a new secret and show it; the old secret stays valid for the chosen time."""
        application, form = self.get(application_id), RenewalForm()
        renewed = form.carry_out(
            lambda: actions.rotate_secret(work(), application_id, form.read(RenewalBody))
        )
        return self._show_page(application, form) if renewed is None else self._show_secret(renewed)

    def end_secret(self, application_id: int, secret_id: int) -> ResponseReturnValue:
        """Revoke the older of two secrets."""
        self.get(application_id)
        actions.end_secret(work(), application_id, secret_id)
        flash("Old secret revoked.")
        return self._back_to(application_id)

    def end_removed_scopes(self, application_id: int) -> ResponseReturnValue:
        """Revoke the access tokens that have removed scopes."""
        self.get(application_id)
        ended = actions.end_removed_scopes(work(), application_id)
        flash(f"{pluralize(ended.tokens, 'access token')} revoked. Applications can refresh them.")
        return self._back_to(application_id)

    def delete(self, application_id: int) -> ResponseReturnValue:
        """Show the confirmation page for deleting an application."""
        self.get(application_id)
        return self._rendered("delete", application=_page_of(application_id))

    def remove(self, application_id: int) -> ResponseReturnValue:
        """Delete an application with all its tokens."""
        self.get(application_id)
        application = actions.remove_application(work(), application_id)
        flash(f"The application {application.name} and all its tokens were deleted.")
        is_of_users = self.is_administration and not application.instance_wide
        of = "users" if is_of_users else None
        return redirect(url_for(f"{self.endpoint}.index", of=of))

    def _show_page(self, application: ApplicationView, renewal: RenewalForm) -> ResponseReturnValue:
        page = self._rendered(
            "show",
            application=_page_of(application.id),
            scopes=views(application.scopes),
            secrets=list_secrets(application.id, session=db.session(), now=now()),
            groups=_groups_of(application),
            machine=find_service_account(application.id, session=db.session(), today=now().date()),
            machine_scopes=views(scope for scope in application.scopes if scope in FOR_MACHINES),
            secret=take_one_time_secret(_SECRET, application.id),
            renewal=renewal,
            endpoints=endpoints(),
            **self._setup_of(application),
            refresh_replay_seconds=settings().refresh_replay_seconds,
            removed=find_removed_scopes(
                application.id, application.scopes, session=db.session(), now=now()
            ),
        )
        return page, 422 if renewal.errors else 200, {"Cache-Control": "no-store"}

    def _setup_of(self, application: ApplicationView) -> dict[str, object]:
        viewer, session = self._viewer(), db.session()
        secrets = list_secrets(application.id, session=session, now=now())
        return {
            "progress": progress_of(application, viewer=viewer, session=session, now=now()),
            "rotation": rotation_of(secrets, now=now()),
            "refused_requests": list_refusals(application.id, session=session),
        }

    def _viewer(self) -> Viewer:
        user_id = get_current_user().id
        return Viewer(user_id=user_id, sees_everybody=self.is_administration)

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

    def _show_secret(self, made: ApplicationWithSecret) -> ResponseReturnValue:
        keep_one_time_secret(_SECRET, made.id, made.secret or "")
        return self._back_to(made.id)

    def _back_to(self, application_id: int) -> ResponseReturnValue:
        return redirect(url_for(f"{self.endpoint}.show", application_id=application_id))


def _groups_of(application: ApplicationView) -> tuple[str, ...]:
    return paths_of(application.allowed_group_ids or (), session=db.session())


def _page_of(application_id: int) -> ApplicationPage:
    return get_page(application_id, session=db.session(), now=now())


applications = PageBlueprint("applications", __name__, url_prefix="/-/user_settings/applications")


def _get_own(application_id: int) -> ApplicationView:
    return get_own(application_id, owner_id=get_current_user().id, session=db.session())


ApplicationPages(
    endpoint="applications", form=ApplicationForm, get=_get_own, is_administration=False
).bind(applications, signed_in)


@applications.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the user's applications."""
    mine = list_own(get_current_user().id, session=db.session(), now=now())
    return render_template("applications/index.html", applications=mine)
