"""/api/v4/…/on_call/report and …/incidents/<iid>/document: what teams learn from, also as files."""

from flask import Response

from domain.alerts.listing.queries import LARGEST_IID
from domain.projects.views import ProjectView
from domain.reports import actions
from domain.reports import incident_documents as documents
from domain.reports.types import ReportQuery
from web.api.description.described import answers_with
from web.api.operations import Resources, operation
from web.http.work import work
from web.pages.text_files import text_file

_PROJECT = "/projects/<path:reference>"
_DOCUMENT = f"{_PROJECT}/incidents/<int(max={LARGEST_IID}):iid>"

on_call_reports = Resources("on_call_reports", __name__, url_prefix=f"{_PROJECT}/on_call")
on_call_reports.bind("GET", "/report", actions.show_report)


@on_call_reports.get("/report.<any(md, csv):kind>")
@answers_with(md="text/markdown", csv="text/csv")
@operation("on_call_reports.download", query=ReportQuery)
def download(project: ProjectView, query: ReportQuery, kind: str) -> Response:
    """Export a report: all of it in Markdown, or its pages as CSV."""
    return text_file(actions.write_report(work(), project, query, kind), f"report.{kind}")


@on_call_reports.get("/report/figures.csv")
@answers_with(file="text/csv")
@operation("on_call_reports.download_figures", query=ReportQuery)
def download_figures(project: ProjectView, query: ReportQuery) -> Response:
    """Export the figures of a report as CSV."""
    return text_file(actions.write_figures(work(), project, query), "figures.csv")


incident_documents = Resources("incident_documents", __name__, url_prefix=_DOCUMENT)
incident_documents.bind("GET", "/document", documents.show_document)
incident_documents.bind("PUT", "/document", documents.change_document)


@incident_documents.get("/document.md", endpoint="download")
@answers_with(file="text/markdown")
@operation("incident_documents.download")
def download_document(project: ProjectView, iid: int) -> Response:
    """Export the document after an incident in Markdown."""
    return text_file(documents.write_document(work(), project, iid), f"incident-{iid}.md")
