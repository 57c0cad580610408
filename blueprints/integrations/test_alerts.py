"""Send a test alert, or only see what would become of it."""

from dataclasses import dataclass

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations.integrations import IntegrationRow, IntegrationView
from domain.alerts.integrations.samples import mapping_of
from domain.alerts.integrations.snippets import example_body
from domain.alerts.integrations.test_alerts import TrialResult, rehearse, send_trial
from domain.alerts.reading.parse_warnings import parse_warnings_on
from domain.alerts.receiving.receivers import BodyTooLargeError, DisabledReceiverError
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.clock import start_stopwatch
from domain.errors import DomainError, NotFoundError
from domain.projects.views import ProjectView
from forms.test_alert import TestAlertForm
from web.http.access import project_member, visitor
from web.pages.namespaces import integration_of, shown
from web.services import now, reading, services, settings

trials = Blueprint(
    "trials",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)

#: An error is a few sentences; what is wrong with the first items is wrong with the rest.
_MOST_REASONS = 5


@dataclass(frozen=True, kw_only=True)
class _TestPage:
    """What the page is about."""

    project: ProjectView
    row: IntegrationRow
    seen: IntegrationView


@trials.route("/test", methods=["GET", "POST"])
@project_member(at_least=Role.DEVELOPER)
def test(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Send a test alert and explain what became of it; a dry run stores nothing."""
    row = integration_of(project, integration_id)
    page = _TestPage(project=project, row=row, seen=shown(row, project))
    form = TestAlertForm(payload=example_body(_receiving(page.seen), now=now()))
    if not form.validate_on_submit():
        return _page(page, form)
    is_dry = request.form.get("do") == "rehearse"
    try:
        result = _rehearse(page, form.body) if is_dry else _send(page, form.body)
    except DomainError as error:
        form.object_to("payload", " ".join([str(error), *parse_warnings_on(error)[:_MOST_REASONS]]))
        return _page(page, form)
    return _page(page, form, result)


def _receiving(seen: IntegrationView) -> IntegrationType:
    if seen.type is IntegrationType.EXTERNAL:
        raise NotFoundError("A link to an on-call tool receives no alerts.")
    return seen.type


def _send(page: _TestPage, body: bytes) -> TrialResult:
    if not page.seen.active:
        message = "This integration is turned off; turn it on under “Configure” first."
        raise DisabledReceiverError(message)
    delivery, mapping = _inbound_delivery(page, body), mapping_of(page.row)
    return send_trial(delivery, mapping, hot=services().hot, reading=reading())


def _rehearse(page: _TestPage, body: bytes) -> TrialResult:
    delivery, mapping = _inbound_delivery(page, body), mapping_of(page.row)
    return rehearse(delivery, mapping, hot=services().hot, reading=reading())


def _inbound_delivery(page: _TestPage, body: bytes) -> InboundDelivery:
    limit = settings().alert_body_limit_bytes
    if len(body) > limit:
        raise BodyTooLargeError(f"The payload is larger than {limit} bytes.")
    return InboundDelivery(
        project_id=page.project.id,
        integration_id=page.seen.id,
        format=page.seen.type.value,
        sender=visitor().username[:64],
        body=body,
        size=len(body),
        received_at=now(),
        stopwatch=start_stopwatch(),
        mapping=mapping_of(page.row),
        is_test=True,
    )


def _page(
    page: _TestPage, form: TestAlertForm, result: TrialResult | None = None
) -> ResponseReturnValue:
    html = render_template(
        "integrations/test.html",
        project=page.project,
        integration=page.seen,
        form=form,
        result=result,
    )
    return html, 422 if form.errors else 200
