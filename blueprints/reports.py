"""On-call reports of projects and groups, handoff notes, and post-incident documents."""

from datetime import date, datetime, time, timedelta
from typing import Any

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from domain.alerts.change_feed import Follower, waits_since
from domain.alerts.listing.queries import LARGEST_IID
from domain.core.database.paging import LARGEST_ID, one_of
from domain.core.errors import ConflictError, ForbiddenError, InvalidError
from domain.core.time_zones import instant, zone
from domain.core.types.reading import read_query
from domain.paging.escalations.types import PAGES_KEPT_FOR
from domain.paging.on_call.actions import show_schedule
from domain.projects.views import Holder, ProjectView
from domain.reports import actions
from domain.reports import incident_documents as documents
from domain.reports.noise import matchers_of
from domain.reports.types import (
    DocumentQuery,
    IncidentDocument,
    IncidentDocumentChange,
    NewHandoverNote,
    ReportPeriod,
    ReportQuery,
)
from domain.reports.writing import answer_words, length_words, reason_words
from forms.reports import HandoverNoteForm, IncidentDocumentForm
from web.access.decorators import get_current_user, permitted
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint, PageBlueprint
from web.http.text_files import text_file
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.form_pages import form_page
from web.pages.list_query import list_query

on_call_reports = NamespaceBlueprint("on_call_reports", __name__, below="on_call")
_PARAMETERS = ("period", "from", "until")
#: Value for a custom period of days.
_OWN = "own"
_DAY = timedelta(days=1)


@on_call_reports.get("/reports")
@permitted("on_call_reports.show")
def index(holder: Holder) -> ResponseReturnValue:
    """Show the report of a period, by default of the last night."""
    given = list_query(*_PARAMETERS)
    report, problem = None, ""
    try:
        if not _is_to_choose(given):
            report = actions.show_report(work(), holder, _asked(given))
    except InvalidError as error:
        problem = str(error)
    projects = actions.reported_projects(work(), holder)
    page = render_template(
        "reports/show.html",
        holder=holder,
        projects=projects,
        report=report,
        problem=problem,
        given=given,
        asked={**holder.url_values, **{n: given[n] for n in _PARAMETERS if given.get(n)}},
        kept_days=PAGES_KEPT_FOR.days,
        waits_since=waits_since(
            Follower.ESCALATIONS, [each.id for each in projects.values()], session=db.session()
        ),
        **_WORDS,
    )
    return page, 422 if problem else 200


_WORDS: dict[str, Any] = {
    "answer_words": answer_words,
    "length_words": length_words,
    "reason_words": reason_words,
    "matchers_of": matchers_of,
}


def _is_to_choose(given: MultiDict[str, str]) -> bool:
    """Return whether the reader selected a custom period but has not entered its days yet."""
    return given.get("period") == _OWN and not (given.get("from") or given.get("until"))


def _asked(given: MultiDict[str, str]) -> ReportQuery:
    """Return the query of the report.

    Raise InvalidError for invalid days.
    """
    period = one_of(given, "period", [*ReportPeriod, _OWN], ReportPeriod.NIGHT)
    place = get_current_user().time_zone
    if period != _OWN:
        return read_query(ReportQuery, {"period": [period], "time_zone": [place]})
    first, last = _midnight(given, "from", place), _midnight(given, "until", place, after=_DAY)
    times = {"from": [first.isoformat()], "until": [last.isoformat()]}
    return read_query(ReportQuery, {**times, "time_zone": [place]})


def _midnight(
    given: MultiDict[str, str], name: str, place: str, *, after: timedelta = timedelta()
) -> datetime:
    try:
        day = date.fromisoformat(given.get(name, ""))
        return instant(datetime.combine(day + after, time()), zone(place))
    except (ValueError, OverflowError) as error:
        raise InvalidError("Choose a first and a last day.", field=name) from error


@on_call_reports.get("/report.<any(md, csv):kind>")
@permitted("on_call_reports.download").but(is_heavy=True)
def download(holder: Holder, kind: str) -> Response:
    """Return the report as Markdown, or its pages as CSV."""
    query = _asked(list_query(*_PARAMETERS))
    return text_file(actions.write_report(work(), holder, query, kind), f"report.{kind}")


@on_call_reports.get("/report/figures.csv")
@permitted("on_call_reports.download_figures").but(is_heavy=True)
def download_figures(holder: Holder) -> Response:
    """Return the figures of the report as CSV."""
    query = _asked(list_query(*_PARAMETERS))
    return text_file(actions.write_figures(work(), holder, query), "figures.csv")


on_call_handover_notes = NamespaceBlueprint(
    "on_call_handover_notes",
    __name__,
    below="on_call/schedules/<int:schedule_id>/handover_notes",
)


@on_call_handover_notes.route("/new", methods=["GET", "POST"])
@permitted("on_call_handover_notes.create")
def new(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    """Create a handoff note for the next user on call."""
    schedule = show_schedule(work(), holder, schedule_id)
    form = HandoverNoteForm()
    if request.method == "GET":
        form.text.data = actions.draft_handover_note(work(), holder, schedule_id).text
    elif form.carry_out(
        lambda: actions.leave_handover_note(work(), holder, schedule_id, form.read(NewHandoverNote))
    ):
        flash("Handoff note saved.")
        return _to_schedule(holder, schedule_id)
    return form_page("reports/note.html", form, holder=holder, schedule=schedule)


@on_call_handover_notes.post(f"/<int(max={LARGEST_ID}):note_id>/delete")
@permitted("on_call_handover_notes.delete")
def delete(holder: Holder, schedule_id: int, note_id: int) -> ResponseReturnValue:
    """Delete a handoff note."""
    with refusals_shown(ForbiddenError):
        actions.delete_handover_note(work(), holder, schedule_id, note_id)
        flash("Handoff note deleted.")
    return _to_schedule(holder, schedule_id)


def _to_schedule(holder: Holder, schedule_id: int) -> ResponseReturnValue:
    url = url_for(
        "on_call_schedules.show",
        schedule_id=schedule_id,
        _anchor="handover-notes",
        **holder.url_values,
    )
    return redirect(url)


incident_documents = PageBlueprint(
    "incident_documents",
    __name__,
    url_prefix=f"/<names:project_path>/-/incidents/<int(max={LARGEST_IID}):iid>",
)


@incident_documents.route("/document", methods=["GET", "POST"])
@permitted("incident_documents.show", to_post="incident_documents.change")
def edit(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show and change the post-incident document."""
    wants_template = bool(list_query("template").get("template"))
    document = documents.show_document(work(), project, iid, DocumentQuery(template=wants_template))
    form = IncidentDocumentForm(text=document.text, revision=document.revision)
    if form.is_submitted() and form.carry_out(lambda: _save(project, document, form)):
        flash("Document saved.")
        return redirect(url_for("incident_documents.edit", project_path=project.path, iid=iid))
    return form_page("reports/document.html", form, project=project, document=document)


def _save(
    project: ProjectView, before: IncidentDocument, form: IncidentDocumentForm
) -> IncidentDocument:
    """Save the posted document; errors of the action pass through."""
    change = form.read(IncidentDocumentChange)
    try:
        return documents.change_document(work(), project, before.incident_iid, change)
    except ConflictError:
        # The page now shows the other version, so the next save may overwrite it.
        form.revision.data = str(before.revision)
        raise


@incident_documents.get("/document.md", endpoint="download")
@permitted("incident_documents.download")
def download_document(project: ProjectView, iid: int) -> Response:
    """Return the document in Markdown."""
    return text_file(documents.write_document(work(), project, iid), f"incident-{iid}.md")
