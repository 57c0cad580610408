"""Actions that show on-call reports, and that create, show and delete handoff notes."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.database.pagination import fetch_list_page
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError
from domain.core.time_zones import normalize_zone_name
from domain.core.types.pagination import ListPage
from domain.incidents.types import validate_multiline_text
from domain.paging.on_call.schedules import get_schedule, get_schedule_row
from domain.projects.row_ownership import build_owner_match_condition
from domain.projects.views import ProjectOrGroup, ProjectView
from domain.reports import report_formats as writing
from domain.reports.comparison import (
    Comparison,
    compare_figures,
    find_previous_figures,
    measure_on_call_time,
)
from domain.reports.handoff_drafts import build_handoff_draft, find_shift_to_hand_off
from domain.reports.handoff_notes import select_handoff_notes
from domain.reports.report_builder import (
    build_on_call_report,
    find_report_scope,
    read_all_pages,
)
from domain.reports.types import (
    MAX_HANDOFF_NOTE_LENGTH,
    HandoverDraft,
    HandoverNote,
    HandoverNoteQuery,
    NewHandoverNote,
    Report,
    ReportQuery,
)
from models import OnCallHandoverNote, OnCallSchedule

#: Maximum number of notes that are shown with a schedule.
_MAX_SHOWN_NOTES = 5


@read_action("on_call_reports.show")
def show_report(work: UnitOfWork, holder: ProjectOrGroup, query: ReportQuery) -> Report:
    """Show the on-call report for a period.

    The report contains pages, response times, nights with pages, and noisy rules. The report for a
    group covers all projects in the group and its subgroups.

    Raise InvalidError for an invalid period or time zone.
    """
    period, zone = query.build_period(work.now), normalize_zone_name(query.time_zone)
    return build_on_call_report(work, holder, period, zone, query.page_condition)


@read_action("on_call_reports.show")
def compare_report(
    work: UnitOfWork, holder: ProjectOrGroup, query: ReportQuery, report: Report
) -> Comparison:
    """Compare the figures of a report with the figures of the preceding period.

    The comparison includes the time that each user was on call.
    """
    period, zone = query.build_period(work.now), normalize_zone_name(query.time_zone)
    previous = find_previous_figures(work, holder, period, zone)
    return compare_figures(report, previous, measure_on_call_time(work, holder, period))


@read_action("on_call_reports.show")
def list_reported_projects(work: UnitOfWork, holder: ProjectOrGroup) -> Mapping[str, ProjectView]:
    """List the projects that a report covers, by path."""
    return {each.path: each for each in find_report_scope(work, holder).projects.values()}


@read_action("on_call_reports.download")
def export_report(
    work: UnitOfWork, holder: ProjectOrGroup, query: ReportQuery, kind: str
) -> Iterator[str]:
    """Return the report as text: `md` contains the whole report, and `csv` contains all pages.

    The pages are read while the response is sent. Raise InvalidError for an invalid period or time
    zone.
    """
    if kind == "md":
        report = show_report(work, holder, query)
        lines = writing.format_report(report, compare_report(work, holder, query, report))
        return (f"{line}\n" for line in lines)
    pages = read_all_pages(work, holder, query.build_period(work.now), query.page_condition)
    return writing.format_pages_as_csv(pages, of_group=holder.is_group)


@read_action("on_call_reports.download_figures")
def export_figures(work: UnitOfWork, holder: ProjectOrGroup, query: ReportQuery) -> str:
    """Return the figures of the report as CSV."""
    report = show_report(work, holder, query)
    return writing.format_figures_as_csv(report, compare_report(work, holder, query, report))


@read_action("on_call_handover_notes.index", plural="handover_notes")
def list_handoff_notes(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str, query: HandoverNoteQuery
) -> ListPage[HandoverNote]:
    """List the handoff notes of a schedule."""
    here = _select_schedule_notes(holder, get_schedule_row(work, holder, schedule_id).id)
    orders = {"id": OnCallHandoverNote.id}
    return ListPage.from_page_result(
        fetch_list_page(here, orders, query.requested_range, session=work.session),
        HandoverNote.model_validate,
    )


@read_action("on_call_handover_notes.index")
def list_latest_handoff_notes(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int
) -> list[HandoverNote]:
    """List the latest handoff notes of a schedule, newest first."""
    here = _select_schedule_notes(holder, schedule_id)
    newest = here.order_by(OnCallHandoverNote.id.desc()).limit(_MAX_SHOWN_NOTES)
    return list(map(HandoverNote.model_validate, work.session.execute(newest)))


@read_action("on_call_handover_notes.draft")
def draft_handoff_note(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str
) -> HandoverDraft:
    """Show a draft handoff note with the open alerts and the events of the shift.

    Raise NotFoundError if the schedule does not exist.
    """
    schedule = get_schedule(work, holder, schedule_id)
    shift = find_shift_to_hand_off(work, schedule.id)
    text = build_handoff_draft(work, holder, schedule, shift)
    return HandoverDraft(text=text, starts_at=shift.start, ends_at=shift.end)


@action("on_call_handover_notes.create")
def create_handoff_note(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str, new: NewHandoverNote
) -> HandoverNote:
    """Create a handoff note for the next user on call.

    Raise InvalidError for invalid text, and NotFoundError if the schedule does not exist.
    """
    schedule = get_schedule_row(work, holder, schedule_id)
    text = validate_multiline_text(new.text, "text", MAX_HANDOFF_NOTE_LENGTH)
    if not text:
        raise InvalidError("Enter a note for the next person on call.", field="text")
    row = OnCallHandoverNote(
        schedule_id=schedule.id, user_id=work.actor.id, text=text, created_at=work.now
    )
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    details = {holder.namespace.resource_type: holder.path, "note_id": row.id}
    work.record_audit_event(EventKind.HANDOVER_NOTE_CREATED, subject=schedule.name, details=details)
    return _get_note(work, holder, schedule.id, row.id)


@action("on_call_handover_notes.delete")
def delete_handoff_note(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str, note_id: int
) -> HandoverNote:
    """Delete a handoff note.

    Maintainers can delete all notes; other users can delete only their own notes. The response
    contains the deleted note.

    Raise NotFoundError if the note does not exist, and ForbiddenError for another user's note.
    """
    schedule = get_schedule_row(work, holder, schedule_id)
    gone = _get_note(work, holder, schedule.id, note_id)
    row = work.session.get_one(OnCallHandoverNote, note_id)
    if row.user_id != work.actor.id and not holder.can_maintain:
        message = "You need the Maintainer role to delete other users' notes."
        raise ForbiddenError(message)
    work.session.delete(row)
    details = {holder.namespace.resource_type: holder.path, "note_id": note_id}
    work.record_audit_event(EventKind.HANDOVER_NOTE_REMOVED, subject=schedule.name, details=details)
    return gone


def _select_schedule_notes(holder: ProjectOrGroup, schedule_id: int) -> Select[*tuple[Any, ...]]:
    owned = select_handoff_notes(build_owner_match_condition(OnCallSchedule, holder))
    return owned.where(OnCallHandoverNote.schedule_id == schedule_id)


def _get_note(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, note_id: int
) -> HandoverNote:
    here = _select_schedule_notes(holder, schedule_id)
    row = work.session.execute(here.where(OnCallHandoverNote.id == note_id)).one_or_none()
    if row is None:
        raise NotFoundError(f"Handoff note {note_id} not found in this schedule.")
    return HandoverNote.model_validate(row)
