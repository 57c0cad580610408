"""/api/v4/…/on_call/report and …/incidents/<iid>/document: reports and documents."""

from flask import Response

from domain.alerts.listing.queries import LARGEST_IID
from domain.projects.views import Holder, ProjectView
from domain.reports import actions
from domain.reports import incident_documents as documents
from domain.reports.types import ReportQuery
from web.api.description.described import answers_with
from web.api.operations import Resources, operation
from web.http.text_files import text_file
from web.http.work import work

_PROJECT = "/projects/<path:reference>"
_DOCUMENT = f"{_PROJECT}/incidents/<int(max={LARGEST_IID}):iid>"

on_call_reports = Resources(
    "on_call_reports",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/on_call",
)
on_call_reports.bind("GET", "/report", actions.show_report)


@on_call_reports.get("/report.<any(md, csv):file_type>")
@answers_with(md="text/markdown", csv="text/csv")
@operation("on_call_reports.download", query=ReportQuery).but(is_heavy=True)
def download(holder: Holder, query: ReportQuery, file_type: str) -> Response:
    """Export an on-call report as Markdown, or its pages as CSV."""
    return text_file(actions.write_report(work(), holder, query, file_type), f"report.{file_type}")


@on_call_reports.get("/report/figures.csv")
@answers_with(file="text/csv")
@operation("on_call_reports.download_figures", query=ReportQuery).but(is_heavy=True)
def download_figures(holder: Holder, query: ReportQuery) -> Response:
    """Export the figures of an on-call report as CSV."""
    return text_file(actions.write_figures(work(), holder, query), "figures.csv")


incident_documents = Resources("incident_documents", __name__, url_prefix=_DOCUMENT)
incident_documents.bind("GET", "/document", documents.show_document)
incident_documents.bind("PUT", "/document", documents.change_document)


@incident_documents.get("/document.md", endpoint="download")
@answers_with(file="text/markdown")
@operation("incident_documents.download")
def download_document(project: ProjectView, iid: int) -> Response:
    """Export the post-incident document as Markdown."""
    return text_file(documents.write_document(work(), project, iid), f"incident-{iid}.md")
