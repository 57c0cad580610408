"""Pages for an integration's credentials and test alerts."""

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.integrations.gallery import render_tool_guide
from domain.alerts.formats.snippets import Snippet, build_general_snippets
from domain.alerts.integrations import actions
from domain.alerts.integrations.delivery_actions import send_test_alert_or_preview
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.alerts.integrations.mapping_questions import count_open_questions
from domain.alerts.integrations.setup_progress import get_setup_progress
from domain.alerts.integrations.trial_alerts import TestAlertBody, TestAlertResult
from domain.alerts.integrations.types import IntegrationCredentials, IntegrationView, KeyRotation
from domain.alerts.parsing.parse_warnings import collect_error_warnings
from domain.core.errors import DomainError
from domain.core.grace_period import GracePeriod
from domain.paging.escalations.routes import has_no_applicable_policy
from domain.projects.views import ProjectView
from forms.integrations import ResetKeyForm, RevokeKeyForm, TestAlertForm
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.services import get_current_time, get_parser_settings, get_settings

integration_keys = PageBlueprint(
    "integration_keys",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)
#: Maximum number of parse warnings shown with an error. Later warnings usually repeat earlier ones.
_MAX_SHOWN_WARNINGS = 5


@integration_keys.get("/credentials")
@permission_required("alert_integration_keys.credentials")
def credentials(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show the URL, the keys, and snippets for senders."""
    return _render_credentials_page(project, integration_id, ResetKeyForm())


@integration_keys.get("/setup")
@permission_required("alert_integration_keys.credentials")
def setup(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show only the setup progress of the integration, for a page that polls the progress."""
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    page = render_template(
        "integrations/_setup.html",
        project=project,
        integration=integration,
        **_find_setup_progress(project, integration_id),
    )
    return page, 200, {"Cache-Control": "no-store"}


@integration_keys.post("/reset_key")
@permission_required("alert_integration_keys.rotate")
def reset_key(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Replace the integration's key.

    The previous key is accepted for the chosen grace period.
    """
    form, unit = ResetKeyForm(), get_unit_of_work()
    made = form.run_if_valid(
        lambda: actions.rotate_key(
            unit,
            project,
            integration_id,
            KeyRotation(
                key_id=form.seen.data or "",
                previous_key_expires_at=form.grace_period.compute_end(unit.now),
            ),
        )
    )
    if made is None:
        return _render_credentials_page(project, integration_id, form)
    is_over = form.grace_period is GracePeriod.NOW
    kept = "no longer works" if is_over else "stays valid for the chosen time"
    flash(f"Key reset. The old key {kept}.")
    return _redirect_to_credentials(project, integration_id)


@integration_keys.post("/end_previous_key")
@permission_required("alert_integration_keys.delete")
def end_previous_key(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Revoke the previous key before its grace period ends."""
    form = RevokeKeyForm()
    if form.validate_on_submit():
        actions.revoke_previous_key(
            get_unit_of_work(), project, integration_id, form.seen.data or ""
        )
        flash("The previous key no longer works.")
    return _redirect_to_credentials(project, integration_id)


def _find_setup_progress(project: ProjectView, integration_id: int) -> dict[str, Any]:
    """Return the setup progress: whether alerts arrive, and whether they page anyone."""
    session = db.session()
    return {
        "set_up": get_setup_progress(integration_id, session=session),
        "pages_nobody": has_no_applicable_policy(project.id, session=session),
    }


def _redirect_to_credentials(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    path = project.path
    url = url_for("integration_keys.credentials", project_path=path, integration_id=integration_id)
    return redirect(url)


def _render_credentials_page(
    project: ProjectView, integration_id: int, form: ResetKeyForm
) -> ResponseReturnValue:
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    shown = actions.show_credentials(get_unit_of_work(), project, integration_id)
    tool = integration.find_tool(reading=get_parser_settings())
    page = render_template(
        "integrations/credentials.html",
        project=project,
        integration=integration,
        open_questions=count_open_questions(get_unit_of_work(), integration),
        keys=shown,
        reset=form,
        **_find_setup_progress(project, integration_id),
        snippets=_build_snippets(integration, shown),
        tool=tool,
        guide=render_tool_guide(tool, project, url=integration.url) if tool else None,
    )
    return page, 422 if form.errors else 200, {"Cache-Control": "no-store"}


def _build_snippets(
    integration: IntegrationView, keys: IntegrationCredentials
) -> tuple[Snippet, ...]:
    """Return the snippets with request bodies that the integration can parse."""
    body = integration.build_example_body(now=get_current_time(), reading=get_parser_settings())
    if integration.has_mapping:
        return build_general_snippets(keys.url, keys.key, body)
    base_url = get_settings().base_url
    return integration.format.build_snippets(keys.url, keys.key, base_url=base_url, body=body)


test_alerts = PageBlueprint(
    "test_alerts",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)


@test_alerts.route("/test", methods=["GET", "POST"])
@permission_required("alert_integrations.test").with_changes(writes=False)
def send(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Send a test alert, or preview it in a dry run, and explain the result."""
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    payload = integration.build_example_body(now=get_current_time(), reading=get_parser_settings())
    form = TestAlertForm(payload=payload)
    if not form.validate_on_submit():
        return _render_test_page(project, integration, form)
    is_dry = request.form.get("do") == "dry_run"
    test = TestAlertBody.model_construct(payload=form.payload.data or "", dry_run=is_dry)
    try:
        result = send_test_alert_or_preview(get_unit_of_work(), project, integration_id, test)
    except DomainError as error:
        form.add_error(
            "payload", " ".join([str(error), *collect_error_warnings(error)[:_MAX_SHOWN_WARNINGS]])
        )
        return _render_test_page(project, integration, form)
    return _render_test_page(project, integration, form, result)


def _render_test_page(
    project: ProjectView,
    integration: IntegrationView,
    form: TestAlertForm,
    result: TestAlertResult | None = None,
) -> ResponseReturnValue:
    return render_form_page(
        "integrations/test.html",
        form,
        project=project,
        integration=integration,
        open_questions=count_open_questions(get_unit_of_work(), integration),
        result=result,
        recovery=integration.build_recovery_body(
            form.payload.data or "", now=get_current_time(), reading=get_parser_settings()
        )
        if result and result.delivery_id
        else None,
        pages_nobody=result is not None
        and has_no_applicable_policy(project.id, session=db.session()),
    )
