"""The page that sends a test alert, or shows in a dry run what it would do."""

from flask import render_template, request
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations.integrations import IntegrationView
from domain.alerts.integrations.snippets import example_body
from domain.alerts.integrations.test_alerts import TestAlertResult, dry_run, send_test_alert
from domain.alerts.reading.parse_warnings import parse_warnings_on
from domain.alerts.receiving.receivers import BodyTooLargeError, DisabledReceiverError
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.errors import DomainError, NotFoundError
from domain.projects.views import ProjectView
from forms.test_alert import TestAlertForm
from web.access.marks import project_member
from web.alerts.page_deliveries import page_delivery
from web.http.endpoints import PageBlueprint
from web.pages.namespaces import integration_of
from web.services import now, reading, services, settings

test_alerts = PageBlueprint(
    "test_alerts",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)

#: Parse warnings shown with an error: later items usually repeat the first ones.
_MOST_REASONS = 5


@test_alerts.route("/test", methods=["GET", "POST"])
@project_member(at_least=Role.DEVELOPER).but(writes=False)
def send(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Send a test alert and explain its result; a dry run stores nothing."""
    integration = integration_of(project, integration_id)
    form = TestAlertForm(payload=example_body(_receiving_type(integration), now=now()))
    if not form.validate_on_submit():
        return _page(project, integration, form)
    do = _dry_run if request.form.get("do") == "dry_run" else _send
    try:
        result = do(integration, form.body)
    except DomainError as error:
        form.object_to("payload", " ".join([str(error), *parse_warnings_on(error)[:_MOST_REASONS]]))
        return _page(project, integration, form)
    return _page(project, integration, form, result)


def _receiving_type(integration: IntegrationView) -> IntegrationType:
    if integration.type is IntegrationType.EXTERNAL:
        raise NotFoundError("A link to an on-call tool receives no alerts.")
    return integration.type


def _send(integration: IntegrationView, body: bytes) -> TestAlertResult:
    if not integration.active:
        message = "This integration is off; turn it on under “Configure” first."
        raise DisabledReceiverError(message)
    delivery = _inbound_delivery(integration, body)
    return send_test_alert(delivery, connection=services().connections, reading=reading())


def _dry_run(integration: IntegrationView, body: bytes) -> TestAlertResult:
    delivery = _inbound_delivery(integration, body)
    return dry_run(delivery, connection=services().connections, reading=reading())


def _inbound_delivery(integration: IntegrationView, body: bytes) -> InboundDelivery:
    limit = settings().alert_body_limit_bytes
    if len(body) > limit:
        raise BodyTooLargeError(f"The payload is larger than {limit} bytes.")
    return page_delivery(integration, body, is_test=True)


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
    )
    return page, 422 if form.errors else 200
