"""The gallery of known tools, and pages that add an integration for a tool."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from blueprints.help.documents import GuideValues, render_guide_steps
from domain.alerts.formats.registry import ON_CALL_TOOL_LINKS
from domain.alerts.integrations.integrations import can_customize_integrations
from domain.alerts.integrations.mapping_actions import create_integration_for_tool
from domain.alerts.recognition.known_tools import get_known_tool, search_tools
from domain.alerts.tools.base import MonitoringTool
from domain.projects.views import ProjectView
from forms.integrations import ToolIntegrationForm
from web.access.decorators import permission_required
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query
from web.services import get_settings

gallery = PageBlueprint(
    "gallery", __name__, url_prefix="/<names:project_path>/-/settings/integrations/new/tools"
)


@gallery.get("")
@permission_required("alert_integrations.create")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the known tools by kind, or the tools that match a search."""
    search = get_list_query("search").get("search", "").strip()
    return render_template(
        "integrations/gallery.html",
        project=project,
        search=search,
        groups=search_tools(search),
        links=ON_CALL_TOOL_LINKS,
    )


@gallery.route("/<slug>", methods=["GET", "POST"])
@permission_required("alert_integrations.create")
def add(project: ProjectView, slug: str) -> ResponseReturnValue:
    """Show how to connect a tool, and add an integration for it."""
    known = get_known_tool(slug)
    form = ToolIntegrationForm(name=known.tool.name)
    created = form.run_if_valid(
        lambda: create_integration_for_tool(
            get_unit_of_work(), project, known, form.name.data or ""
        )
    )
    if created is None:
        return render_form_page(
            "integrations/tool.html",
            form,
            project=project,
            tool=known.tool,
            may_map=can_customize_integrations(get_unit_of_work()),
            guide=render_tool_guide(known.tool, project),
        )
    flash("Integration added.")
    path = project.path
    url = url_for("integration_keys.credentials", project_path=path, integration_id=created.id)
    return redirect(url)


def render_tool_guide(
    tool: MonitoringTool, project: ProjectView, *, url: str | None = None
) -> Markup | None:
    """Render a tool's guide, or return None if the tool has no guide.

    `url` is the integration URL that the guide shows.
    """
    has_mapping = not tool.mapping.reads_fields or can_customize_integrations(get_unit_of_work())
    values = GuideValues(
        base_url=get_settings().base_url, integration_url=url, project_path=project.path
    )
    return render_guide_steps(tool.guide, values, has_mapping=has_mapping)
