"""The credentials page of an integration: its URL, its keys, and snippets for senders."""

from typing import Any

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.alerts.integrations import keys as domain
from domain.alerts.integrations.integrations import IntegrationView
from domain.alerts.integrations.set_up import set_up_of
from domain.errors import ConflictError
from domain.escalations.routing import pages_nobody
from domain.grace_period import GracePeriod
from domain.projects.views import ProjectView
from forms.integration import EndKeyForm, ResetKeyForm
from web.access.marks import project_member
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import receiver_of
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now, services, settings

integration_keys = PageBlueprint(
    "integration_keys",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)


@integration_keys.get("/credentials")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def credentials(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show the URL, the keys, and snippets for senders."""
    integration = receiver_of(project, integration_id)
    return _page(project, integration, ResetKeyForm(seen=_keys(integration).key_id))


@integration_keys.get("/setup")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def setup(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show only whether the integration receives, for a page that waits for it."""
    integration = receiver_of(project, integration_id)
    page = render_template(
        "integrations/_setup.html",
        project=project,
        integration=integration,
        **_stage(project, integration_id),
    )
    return page, 200, {"Cache-Control": "no-store"}


@integration_keys.post("/reset_key")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def reset_key(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Replace the key; the old one is accepted for the chosen grace period."""
    integration, form = receiver_of(project, integration_id), ResetKeyForm()
    if not form.validate_on_submit():
        return _page(project, integration, form)
    try:
        _reset(integration, form)
    except ConflictError as error:
        form.object_to("", str(error))
        return _page(project, integration, form)
    record_change(f"key replaced; the old one: {form.chosen.words}", project, integration)
    flash(_SAID.get(form.chosen, "Key reset. The old key stays valid for the chosen time."))
    return _back(project, integration_id)


_SAID = {GracePeriod.NOW: "Key reset. The old key no longer works."}


def _reset(integration: IntegrationView, form: ResetKeyForm) -> None:
    domain.reset_key(
        integration.id,
        seen=form.seen.data or "",
        previous_until=form.chosen.until(now()),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )


@integration_keys.post("/end_previous_key")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def end_previous_key(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Refuse the previous key before its grace period ends."""
    integration, form = receiver_of(project, integration_id), EndKeyForm()
    if form.validate_on_submit():
        domain.end_previous_key(integration.id, seen=form.seen.data or "", session=db.session())
        record_change("previous key ended", project, integration)
        flash("The previous key no longer works.")
    return _back(project, integration_id)


def _stage(project: ProjectView, integration_id: int) -> dict[str, Any]:
    """Return how far the set-up has come: whether alerts arrive, and whether they page anybody."""
    session = db.session()
    return {
        "set_up": set_up_of(integration_id, session=session),
        "pages_nobody": pages_nobody(project.id, session=session),
    }


def _keys(integration: IntegrationView) -> domain.IntegrationKeys:
    return domain.keys_of(
        integration.id, session=db.session(), keyring=services().keyring, now=now()
    )


def _back(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    path = project.path
    url = url_for("integration_keys.credentials", project_path=path, integration_id=integration_id)
    return redirect(url)


def _page(
    project: ProjectView, integration: IntegrationView, form: ResetKeyForm
) -> ResponseReturnValue:
    keys = _keys(integration)
    page = render_template(
        "integrations/credentials.html",
        project=project,
        integration=integration,
        keys=keys,
        reset=form,
        **_stage(project, integration.id),
        snippets=integration.format.snippets(
            integration.url, keys.clear, base_url=settings().base_url, now=now()
        ),
    )
    return page, 422 if form.errors else 200, {"Cache-Control": "no-store"}
