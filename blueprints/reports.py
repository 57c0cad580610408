"""On-call reports for projects and groups, handoff notes, and post-incident documents."""

from datetime import date, datetime, time, timedelta
from typing import Any

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from domain.alerts.change_feed import Follower, find_oldest_change_time
from domain.alerts.listing.queries import MAX_IID
from domain.core.database.pagination import MAX_ID, get_choice
from domain.core.errors import ConflictError, ForbiddenError, InvalidError
from domain.core.time_zones import convert_to_utc, get_zone
from domain.core.types.validation import validate_query
from domain.paging.escalations.types import PAGE_RETENTION
from domain.paging.on_call.actions import show_schedule
from domain.projects.views import ProjectOrGroup, ProjectView
from domain.reports import actions
from domain.reports import incident_documents as documents
from domain.reports.noisy_rules import format_title_matcher
from domain.reports.report_formats import format_duration_cell, format_page_response, format_reason
from domain.reports.types import (
    DocumentQuery,
    IncidentDocument,
    IncidentDocumentChange,
    NewHandoverNote,
    ReportPeriod,
    ReportQuery,
)
from forms.reports import HandoffNoteForm, IncidentDocumentForm
from web.access.decorators import get_current_user, permission_required
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint, PageBlueprint
from web.http.text_files import build_text_file_response
from web.http.unit_of_work import get_unit_of_work
from web.pages import report_charts
from web.pages.form_errors import show_errors_on_next_page
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query

on_call_reports = NamespaceBlueprint("on_call_reports", __name__, below="on_call")
_PERIOD_PARAMETERS = ("period", "from", "until")
#: Query parameters that select the cell of the heat map for which pages are listed.
_HOUR_PARAMETERS = ("weekday", "hour")
#: Value of the `period` parameter for a custom period.
_CUSTOM_PERIOD = "own"
_DAY = timedelta(days=1)


@on_call_reports.get("/reports")
@permission_required("on_call_reports.show").with_changes(is_heavy=True)
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Show the report for a period. The default is last night."""
    given = get_list_query(*_PERIOD_PARAMETERS, *_HOUR_PARAMETERS)
    context: dict[str, Any] = {"report": None, "problem": ""}
    try:
        # A user selects a custom period before entering its days.
        if given.get("period") != _CUSTOM_PERIOD or given.get("from") or given.get("until"):
            context |= _build_report_context(holder, _read_report_query(given))
    except InvalidError as error:
        context["problem"] = str(error)
    projects = actions.list_reported_projects(get_unit_of_work(), holder)
    page = render_template(
        "reports/show.html",
        holder=holder,
        projects=projects,
        given=given,
        asked={**holder.url_values, **{n: given[n] for n in _PERIOD_PARAMETERS if given.get(n)}},
        kept_days=PAGE_RETENTION.days,
        waits_since=find_oldest_change_time(
            Follower.ESCALATIONS, [each.id for each in projects.values()], session=db.session()
        ),
        **context,
        **_TEMPLATE_FUNCTIONS,
    )
    return page, 422 if context["problem"] else 200


def _build_report_context(holder: ProjectOrGroup, query: ReportQuery) -> dict[str, Any]:
    """Return the template variables for a report, with a comparison to the previous period."""
    work = get_unit_of_work()
    report = actions.show_report(work, holder, query)
    return {
        "report": report,
        **actions.compare_report(work, holder, query, report)._asdict(),
        "alert_chart": report_charts.build_alert_chart(report, _find_list_url(holder)),
        "time_charts": report_charts.build_response_time_charts(report),
        "listed": (query.weekday, query.hour) if query.page_condition else None,
    }


def _find_list_url(holder: ProjectOrGroup) -> str | None:
    """Return the URL of the alert list, or None if the list may be incomplete.

    For groups, the list contains only alerts from projects that the user is a member of.
    """
    if not holder.is_group:
        return url_for("alerts.index", project_path=holder.path, status="all")
    if get_current_user().is_admin:
        return None
    return url_for("all_alerts.index", status="all", project=holder.path)


_TEMPLATE_FUNCTIONS: dict[str, Any] = {
    "answer_words": format_page_response,
    "length_words": format_duration_cell,
    "reason_words": format_reason,
    "matchers_of": format_title_matcher,
}


def _read_report_query(arguments: MultiDict[str, str]) -> ReportQuery:
    """Parse the query for a report.

    Raise InvalidError for invalid days.
    """
    period = get_choice(arguments, "period", [*ReportPeriod, _CUSTOM_PERIOD], ReportPeriod.NIGHT)
    place = get_current_user().time_zone
    shared = {each: arguments.getlist(each) for each in _HOUR_PARAMETERS if each in arguments}
    shared |= {"time_zone": [place]}
    if period != _CUSTOM_PERIOD:
        return validate_query(ReportQuery, {"period": [period], **shared})
    first, last = (
        _parse_midnight(arguments, "from", place),
        _parse_midnight(arguments, "until", place, after=_DAY),
    )
    times = {"from": [first.isoformat()], "until": [last.isoformat()]}
    return validate_query(ReportQuery, {**times, **shared})


def _parse_midnight(
    arguments: MultiDict[str, str], name: str, place: str, *, after: timedelta = timedelta()
) -> datetime:
    try:
        day = date.fromisoformat(arguments.get(name, ""))
        return convert_to_utc(datetime.combine(day + after, time()), get_zone(place))
    except (ValueError, OverflowError) as error:
        raise InvalidError("Choose the first day and the last day.", field=name) from error


@on_call_reports.get("/report.<any(md, csv):kind>")
@permission_required("on_call_reports.download").with_changes(is_heavy=True)
def download(holder: ProjectOrGroup, kind: str) -> Response:
    """Return the report as Markdown, or its list of notifications as CSV."""
    query = _read_report_query(get_list_query(*_PERIOD_PARAMETERS))
    return build_text_file_response(
        actions.export_report(get_unit_of_work(), holder, query, kind), f"report.{kind}"
    )


@on_call_reports.get("/report/figures.csv")
@permission_required("on_call_reports.download_figures").with_changes(is_heavy=True)
def download_figures(holder: ProjectOrGroup) -> Response:
    """Return the figures of the report as CSV."""
    query = _read_report_query(get_list_query(*_PERIOD_PARAMETERS))
    return build_text_file_response(
        actions.export_figures(get_unit_of_work(), holder, query), "figures.csv"
    )


on_call_handover_notes = NamespaceBlueprint(
    "on_call_handover_notes",
    __name__,
    below="on_call/schedules/<int:schedule_id>/handover_notes",
)


@on_call_handover_notes.route("/new", methods=["GET", "POST"])
@permission_required("on_call_handover_notes.create")
def new(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Create a handoff note for the next user on call."""
    schedule = show_schedule(get_unit_of_work(), holder, schedule_id)
    form = HandoffNoteForm()
    if request.method == "GET":
        form.text.data = actions.draft_handoff_note(get_unit_of_work(), holder, schedule_id).text
    elif form.run_if_valid(
        lambda: actions.create_handoff_note(
            get_unit_of_work(), holder, schedule_id, form.build_entered_body(NewHandoverNote)
        )
    ):
        flash("Handoff note saved.")
        return _redirect_to_schedule(holder, schedule_id)
    return render_form_page("reports/note.html", form, holder=holder, schedule=schedule)


@on_call_handover_notes.post(f"/<int(max={MAX_ID}):note_id>/delete")
@permission_required("on_call_handover_notes.delete")
def delete(holder: ProjectOrGroup, schedule_id: int, note_id: int) -> ResponseReturnValue:
    """Delete a handoff note."""
    with show_errors_on_next_page(ForbiddenError):
        actions.delete_handoff_note(get_unit_of_work(), holder, schedule_id, note_id)
        flash("Handoff note deleted.")
    return _redirect_to_schedule(holder, schedule_id)


def _redirect_to_schedule(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    shown = {"schedule_id": schedule_id, "_anchor": "handover-notes", **holder.url_values}
    return redirect(url_for("on_call_schedules.show", **shown))


incident_documents = PageBlueprint(
    "incident_documents",
    __name__,
    url_prefix=f"/<names:project_path>/-/incidents/<int(max={MAX_IID}):iid>",
)


@incident_documents.route("/document", methods=["GET", "POST"])
@permission_required("incident_documents.show", to_post="incident_documents.change")
def edit(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show and change the post-incident document."""
    wants_template = bool(get_list_query("template").get("template"))
    document = documents.show_document(
        get_unit_of_work(), project, iid, DocumentQuery(template=wants_template)
    )
    form = IncidentDocumentForm(text=document.text, revision=document.revision)
    if form.is_submitted() and form.run_if_valid(lambda: _save_document(project, document, form)):
        flash("Document saved.")
        return redirect(url_for("incident_documents.edit", project_path=project.path, iid=iid))
    return render_form_page("reports/document.html", form, project=project, document=document)


def _save_document(
    project: ProjectView, incident_document: IncidentDocument, form: IncidentDocumentForm
) -> IncidentDocument:
    """Save the submitted document, and return the saved document.

    Raise ConflictError if the document has changed in the meantime. The next submission of the form
    then overwrites that change.
    """
    change = form.build_entered_body(IncidentDocumentChange)
    try:
        return documents.change_document(
            get_unit_of_work(), project, incident_document.incident_iid, change
        )
    except ConflictError:
        # The page now shows the other version, so the next save may overwrite it.
        form.revision.data = str(incident_document.revision)
        raise


@incident_documents.get("/document.md", endpoint="download")
@permission_required("incident_documents.download")
def download_document(project: ProjectView, iid: int) -> Response:
    """Return the document in Markdown."""
    return build_text_file_response(
        documents.export_document(get_unit_of_work(), project, iid), f"incident-{iid}.md"
    )
