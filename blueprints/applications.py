"""Pages for a user's own applications, and views shared with /admin/applications."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.scopes import describe_scopes
from domain.oauth.applications import actions
from domain.oauth.applications.application_users import fetch_application_user_page
from domain.oauth.applications.daily_usage import find_daily_usage
from domain.oauth.applications.rejected_requests import (
    ApplicationViewer,
    find_rejected_requests,
    get_application_setup_progress,
)
from domain.oauth.applications.removed_scopes import find_removed_scopes
from domain.oauth.applications.types import (
    ApplicationWithSecret,
    OwnApplicationBody,
    SecretRenewalBody,
)
from domain.oauth.clients.allowed_groups import find_allowed_group_paths
from domain.oauth.clients.application_lists import get_application_overview, list_own_applications
from domain.oauth.clients.applications import get_own_application
from domain.oauth.clients.secrets import get_secret_rotation_status, list_secrets
from domain.oauth.clients.service_accounts import find_service_account
from domain.oauth.clients.types import ApplicationOverview, ApplicationView
from domain.oauth.grants.client_credentials import SERVICE_ACCOUNT_SCOPES
from forms.applications import ApplicationForm, SecretRenewalForm
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import AccessDecorator, PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.oauth import list_endpoint_urls
from web.pages.daily_charts import TitledChart, build_usage_charts
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
    parse_day,
)
from web.pages.templating import pluralize
from web.sealing.sealed_values import store_one_time_secret, take_one_time_secret
from web.services import get_current_time, get_settings

_SECRET_NAME = "application secret"  # noqa: S105 - a name


@dataclass(frozen=True, kw_only=True)
class ApplicationPages:
    """Application pages that the user settings and the administration pages share."""

    #: Name of the blueprint, including its parent blueprints.
    endpoint: str
    form: type[ApplicationForm]
    #: Function that returns an application that the user may change, or raises NotFoundError.
    get: Callable[[int], ApplicationView]
    #: True if the pages register instance-wide applications and show the owner of each
    #: application.
    is_administration: bool

    def register_routes(self, blueprint: Blueprint, access_decorator: AccessDecorator) -> None:
        """Add the URLs of the pages to a blueprint, with an access decorator for each view."""
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
            blueprint.add_url_rule(rule, view.__name__, access_decorator(view), methods=methods)

    def new(self) -> ResponseReturnValue:
        """Register an application and show its credentials."""
        form = self.form()
        more = {"is_instance_wide": True} if self.is_administration else {}
        made = form.run_if_valid(
            lambda: actions.register_application(
                get_unit_of_work(), form.build_entered_body(OwnApplicationBody, **more)
            )
        )
        if made is None:
            return self._render_form("new", form)
        return self._store_secret_and_redirect(made)

    def show(self, application_id: int) -> ResponseReturnValue:
        """Show an application, with its secret if the secret was just created or renewed."""
        day = parse_day(get_list_query("day"))
        return self._render_show_page(self.get(application_id), SecretRenewalForm(), day=day)

    def setup(self, application_id: int) -> ResponseReturnValue:
        """Show only the setup progress of an application, for a page that polls the progress."""
        application, day = self.get(application_id), parse_day(get_list_query("day"))
        page = self._render_page(
            "_setup", application=application, **self._build_setup_context(application, day)
        )
        return page, 200, {"Cache-Control": "no-store"}

    def people(self, application_id: int) -> ResponseReturnValue:
        """List the users of an application."""
        get_list_query(*CURSOR_PARAMETERS)
        application = self.get(application_id)
        page = fetch_application_user_page(
            application.id,
            get_requested_keyset_range(),
            viewer=self._get_viewer(),
            session=db.session(),
            now=get_current_time(),
        )
        return self._render_page("people", application=application, page=build_page_links(page))

    def edit(self, application_id: int) -> ResponseReturnValue:
        """Show the form for an application, and save the changes."""
        application = self.get(application_id)
        form = self.form.from_application(application, _list_group_paths(application))
        seen = _get_application_overview(application_id)
        if not form.run_if_valid(
            lambda: actions.change_application(
                get_unit_of_work(), application_id, form.build_change()
            )
        ):
            return self._render_form("edit", form, seen)
        flash("Application saved.")
        return self._redirect_to_application(application_id)

    def renew_secret(self, application_id: int) -> ResponseReturnValue:
        """Issue a new secret and show it.

        The old secret stays valid for the chosen time.
        """
        application, form = self.get(application_id), SecretRenewalForm()
        renewed = form.run_if_valid(
            lambda: actions.rotate_secret(
                get_unit_of_work(), application_id, form.build_entered_body(SecretRenewalBody)
            )
        )
        return (
            self._render_show_page(application, form)
            if renewed is None
            else self._store_secret_and_redirect(renewed)
        )

    def end_secret(self, application_id: int, secret_id: int) -> ResponseReturnValue:
        """Revoke the previous secret of an application."""
        self.get(application_id)
        actions.revoke_old_secret(get_unit_of_work(), application_id, secret_id)
        flash("Old secret revoked.")
        return self._redirect_to_application(application_id)

    def end_removed_scopes(self, application_id: int) -> ResponseReturnValue:
        """Revoke access tokens with scopes that were removed from the application."""
        self.get(application_id)
        ended = actions.expire_removed_scope_tokens(get_unit_of_work(), application_id)
        flash(f"{pluralize(ended.tokens, 'access token')} revoked. Applications can refresh them.")
        return self._redirect_to_application(application_id)

    def delete(self, application_id: int) -> ResponseReturnValue:
        """Show the confirmation page for deleting an application."""
        self.get(application_id)
        return self._render_page("delete", application=_get_application_overview(application_id))

    def remove(self, application_id: int) -> ResponseReturnValue:
        """Delete an application with all its tokens."""
        self.get(application_id)
        application = actions.remove_application(get_unit_of_work(), application_id)
        flash(f"The application {application.name} and all its tokens were deleted.")
        is_of_users = self.is_administration and not application.instance_wide
        of = "users" if is_of_users else None
        return redirect(url_for(f"{self.endpoint}.index", of=of))

    def _render_show_page(
        self, application: ApplicationView, renewal: SecretRenewalForm, *, day: date | None = None
    ) -> ResponseReturnValue:
        session, now = db.session(), get_current_time()
        page = self._render_page(
            "show",
            application=_get_application_overview(application.id),
            scopes=describe_scopes(application.scopes),
            secrets=list_secrets(application.id, session=session, now=now),
            groups=_list_group_paths(application),
            machine=find_service_account(application.id, session=session, today=now.date()),
            machine_scopes=describe_scopes(
                scope for scope in application.scopes if scope in SERVICE_ACCOUNT_SCOPES
            ),
            secret=take_one_time_secret(_SECRET_NAME, application.id),
            renewal=renewal,
            endpoints=list_endpoint_urls(),
            **self._build_setup_context(application, day),
            use_charts=self._build_usage_charts(application.id),
            refresh_replay_seconds=get_settings().refresh_replay_seconds,
            removed=find_removed_scopes(
                application.id, application.scopes, session=session, now=now
            ),
        )
        return page, 422 if renewal.errors else 200, {"Cache-Control": "no-store"}

    def _build_usage_charts(self, application_id: int) -> Sequence[TitledChart]:
        use = find_daily_usage(
            application_id, session=db.session(), today=get_current_time().date()
        )
        url = url_for(f"{self.endpoint}.show", application_id=application_id)
        return build_usage_charts(use, application_url=url)

    def _build_setup_context(
        self, application: ApplicationView, day: date | None = None
    ) -> dict[str, object]:
        viewer, session = self._get_viewer(), db.session()
        secrets = list_secrets(application.id, session=session, now=get_current_time())
        return {
            "progress": get_application_setup_progress(
                application, viewer=viewer, session=session, now=get_current_time()
            ),
            "rotation": get_secret_rotation_status(secrets, now=get_current_time()),
            "refused_requests": find_rejected_requests(application.id, session=session, day=day),
            "day": day,
        }

    def _get_viewer(self) -> ApplicationViewer:
        user_id = get_current_user().id
        return ApplicationViewer(user_id=user_id, sees_everybody=self.is_administration)

    def _render_form(
        self, name: str, form: ApplicationForm, application: ApplicationOverview | None = None
    ) -> ResponseReturnValue:
        page = self._render_page(
            name, form=form, application=application, scope_choices=form.scope_choices
        )
        return page, 422 if form.errors else 200

    def _render_page(self, name: str, **context: object) -> str:
        return render_template(
            f"applications/{name}.html",
            endpoint=self.endpoint,
            is_administration=self.is_administration,
            **context,
        )

    def _store_secret_and_redirect(
        self, application_with_secret: ApplicationWithSecret
    ) -> ResponseReturnValue:
        store_one_time_secret(
            _SECRET_NAME, application_with_secret.id, application_with_secret.secret or ""
        )
        return self._redirect_to_application(application_with_secret.id)

    def _redirect_to_application(self, application_id: int) -> ResponseReturnValue:
        return redirect(url_for(f"{self.endpoint}.show", application_id=application_id))


def _list_group_paths(application: ApplicationView) -> tuple[str, ...]:
    return find_allowed_group_paths(application.allowed_group_ids or (), session=db.session())


def _get_application_overview(application_id: int) -> ApplicationOverview:
    return get_application_overview(application_id, session=db.session(), now=get_current_time())


applications = PageBlueprint("applications", __name__, url_prefix="/-/user_settings/applications")


def _get_own_application(application_id: int) -> ApplicationView:
    return get_own_application(application_id, owner_id=get_current_user().id, session=db.session())


ApplicationPages(
    endpoint="applications", form=ApplicationForm, get=_get_own_application, is_administration=False
).register_routes(applications, sign_in_required)


@applications.get("")
@sign_in_required
def index() -> ResponseReturnValue:
    """List the user's applications."""
    mine = list_own_applications(
        get_current_user().id, session=db.session(), now=get_current_time()
    )
    return render_template("applications/index.html", applications=mine)
