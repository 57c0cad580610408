"""The page that sends a test alert, or shows in a dry run what it would do."""

from flask import render_template, request
from flask.typing import ResponseReturnValue

from domain.alerts.integrations.delivery_actions import send_test
from domain.alerts.integrations.integrations import get_receiver
from domain.alerts.integrations.trials import TestAlertBody, TestAlertResult
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.reading.parse_warnings import parse_warnings_on
from domain.errors import DomainError
from domain.escalations.routes import pages_nobody
from domain.projects.views import ProjectView
from forms.integrations import TestAlertForm
from web.access.marks import permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.services import now

test_alerts = PageBlueprint(
    "test_alerts",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)

#: Parse warnings shown with an error: later items usually repeat the first ones.
_MOST_REASONS = 5


@test_alerts.route("/test", methods=["GET", "POST"])
@permitted("alert_integrations.test").but(writes=False)
def send(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Send a test alert and explain its result; a dry run stores nothing."""
    integration = get_receiver(work(), project, integration_id)
    form = TestAlertForm(payload=_example(integration))
    if not form.validate_on_submit():
        return _page(project, integration, form)
    is_dry = request.form.get("do") == "dry_run"
    test = TestAlertBody.model_construct(payload=form.payload.data or "", dry_run=is_dry)
    try:
        result = send_test(work(), project, integration_id, test)
    except DomainError as error:
        form.object_to("payload", " ".join([str(error), *parse_warnings_on(error)[:_MOST_REASONS]]))
        return _page(project, integration, form)
    return _page(project, integration, form, result)


def _example(integration: IntegrationView) -> str:
    """Return a payload that the integration reads: the sample of its mapping, if it has one."""
    sample = integration.sample if integration.has_mapping else None
    return sample or integration.format.example_body(now=now())


def _page(
    project: ProjectView,
    integration: IntegrationView,
    form: TestAlertForm,
    result: TestAlertResult | None = None,
) -> ResponseReturnValue:
    page = render_template(
        "integrations/test.html",
        project=project,
        integration=integration,
        form=form,
        result=result,
        pages_nobody=result is not None and pages_nobody(project.id, session=db.session()),
    )
    return page, 422 if form.errors else 200
