"""/api/v4/projects/:id/alert_management_integrations: integrations, and their test alerts."""

from domain.alerts.integrations import actions
from domain.alerts.integrations.integrations import get_receiver
from domain.audit.events import Actor
from domain.database.paging import LARGEST_ID
from domain.projects.views import ProjectView
from web.alerts.user_deliveries import dry_run, send_test
from web.api.operations import Resources, operation
from web.api.schemas.alerts.alert_deliveries import TestAlertBody, TestAlertResult
from web.http.work import work
from web.services import now

AT = "/projects/<path:reference>/alert_management_integrations"
#: The converter refuses numbers that databases reject.
ONE = f"/<int(max={LARGEST_ID}):integration_id>"

alert_integrations = Resources("alert_integrations", __name__, url_prefix=AT)
alert_integrations.bind("GET", "", actions.list_summaries)
alert_integrations.bind("POST", "", actions.create_integration)
alert_integrations.bind("GET", ONE, actions.show_integration)
alert_integrations.bind("PUT", ONE, actions.change_integration)
alert_integrations.bind("DELETE", ONE, actions.delete_integration)


@alert_integrations.post(f"{ONE}/test")
@operation("alert_integrations.test", body=TestAlertBody, returns=TestAlertResult)
def test(
    project: ProjectView, integration_id: int, body: TestAlertBody, actor: Actor
) -> TestAlertResult:
    """Send a test alert, or explain what it would do."""
    integration = get_receiver(work(), project, integration_id)
    example = integration.format.example_body(now=now())
    payload = example if body.payload is None else body.payload
    do = dry_run if body.dry_run else send_test
    return TestAlertResult.of(do(integration, payload.encode(), sender=actor.name))
