"""/api/v4/…/on_call/report and …/incidents/<iid>/document: reports and documents."""

from flask import Response

from domain.alerts.listing.queries import MAX_IID
from domain.projects.views import ProjectOrGroup, ProjectView
from domain.reports import actions
from domain.reports import incident_documents as documents
from domain.reports.types import ReportQuery
from web.api.openapi.view_descriptions import declare_media_types
from web.api.operations import ResourceBlueprint, declare_operation
from web.http.text_files import build_text_file_response
from web.http.unit_of_work import get_unit_of_work

_PROJECT_PATH = "/projects/<path:reference>"
_INCIDENT_PATH = f"{_PROJECT_PATH}/incidents/<int(max={MAX_IID}):iid>"

on_call_reports = ResourceBlueprint(
    "on_call_reports",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/on_call",
)
on_call_reports.bind_action("GET", "/report", actions.show_report)


@on_call_reports.get("/report.<any(md, csv):file_type>")
@declare_media_types(md="text/markdown", csv="text/csv")
@declare_operation("on_call_reports.download", query=ReportQuery).with_changes(is_heavy=True)
def download(holder: ProjectOrGroup, query: ReportQuery, file_type: str) -> Response:
    """Export an on-call report as Markdown, or its list of pages as CSV."""
    return build_text_file_response(
        actions.export_report(get_unit_of_work(), holder, query, file_type), f"report.{file_type}"
    )


@on_call_reports.get("/report/figures.csv")
@declare_media_types(file="text/csv")
@declare_operation("on_call_reports.download_figures", query=ReportQuery).with_changes(
    is_heavy=True
)
def download_figures(holder: ProjectOrGroup, query: ReportQuery) -> Response:
    """Export the figures of an on-call report as CSV."""
    return build_text_file_response(
        actions.export_figures(get_unit_of_work(), holder, query), "figures.csv"
    )


incident_documents = ResourceBlueprint("incident_documents", __name__, url_prefix=_INCIDENT_PATH)
incident_documents.bind_action("GET", "/document", documents.show_document)
incident_documents.bind_action("PUT", "/document", documents.change_document)


@incident_documents.get("/document.md", endpoint="download")
@declare_media_types(file="text/markdown")
@declare_operation("incident_documents.download")
def download_document(project: ProjectView, iid: int) -> Response:
    """Export the post-incident document as Markdown."""
    return build_text_file_response(
        documents.export_document(get_unit_of_work(), project, iid), f"incident-{iid}.md"
    )
