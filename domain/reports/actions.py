"""Actions on on-call reports and handoff notes."""

from collections.abc import Iterator, Mapping

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.core.database.paging import fetch_part
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError
from domain.core.time_zones import check_zone
from domain.core.types.base import Found
from domain.incidents.types import checked_lines
from domain.paging.on_call.schedules import get_row, get_schedule
from domain.projects.owners import belongs_to
from domain.projects.views import Holder, ProjectView
from domain.reports import writing
from domain.reports.drafts import draft_of, shift_to_hand_over
from domain.reports.handover_notes import latest_notes, note_of, selected_notes
from domain.reports.reading import all_pages, report_of
from domain.reports.scope import scope_of
from domain.reports.types import (
    LONGEST_HANDOVER_NOTE,
    HandoverDraft,
    HandoverNote,
    HandoverNoteQuery,
    NewHandoverNote,
    Report,
    ReportQuery,
)
from models import OnCallHandoverNote, OnCallSchedule


@question("on_call_reports.show")
def show_report(work: Work, holder: Holder, query: ReportQuery) -> Report:
    """Show the on-call report of a period.

    The report contains pages, response times, nights and noisy rules. The report of a group covers
    all projects below it.

    Raise InvalidError for an invalid period or time zone.
    """
    return report_of(work, holder, query.within(work.now), check_zone(query.time_zone))


@question("on_call_reports.show")
def reported_projects(work: Work, holder: Holder) -> Mapping[str, ProjectView]:
    """List the projects of a report by their paths."""
    return {each.path: each for each in scope_of(work, holder).projects.values()}


@question("on_call_reports.download")
def write_report(work: Work, holder: Holder, query: ReportQuery, kind: str) -> Iterator[str]:
    """Return the report as text: `md` contains everything, `csv` all pages.

    The pages are read while they are sent. Raise InvalidError for an invalid period or time zone.
    """
    if kind == "md":
        return writing.as_markdown(show_report(work, holder, query))
    pages = all_pages(work, holder, query.within(work.now))
    return writing.pages_as_csv(pages, of_group=holder.is_group)


@question("on_call_reports.download_figures")
def write_figures(work: Work, holder: Holder, query: ReportQuery) -> str:
    """Return the figures of the report as CSV."""
    return writing.figures_as_csv(show_report(work, holder, query))


@question("on_call_handover_notes.index", plural="handover_notes")
def list_handover_notes(
    work: Work, holder: Holder, schedule_id: int | str, query: HandoverNoteQuery
) -> Found[HandoverNote]:
    """List the handoff notes of a schedule."""
    schedule = get_row(work, holder, schedule_id)
    here = selected_notes(belongs_to(OnCallSchedule, holder)).where(
        OnCallHandoverNote.schedule_id == schedule.id
    )
    orders = {"id": OnCallHandoverNote.id}
    return Found.of(fetch_part(here, orders, query.part, session=work.session), note_of)


@question("on_call_handover_notes.index")
def notes_of_schedule(work: Work, holder: Holder, schedule_id: int) -> list[HandoverNote]:
    """List the latest handoff notes of a schedule, newest first."""
    return latest_notes(work, holder, schedule_id)


@question("on_call_handover_notes.draft")
def draft_handover_note(work: Work, holder: Holder, schedule_id: int | str) -> HandoverDraft:
    """Show a draft of a handoff note with open alerts and the events of the shift.

    Raise NotFoundError if the schedule does not exist.
    """
    schedule = get_schedule(work, holder, schedule_id)
    shift = shift_to_hand_over(work, schedule.id)
    text = draft_of(work, holder, schedule, shift)
    return HandoverDraft(text=text, starts_at=shift.start, ends_at=shift.end)


@action("on_call_handover_notes.create")
def leave_handover_note(
    work: Work, holder: Holder, schedule_id: int | str, new: NewHandoverNote
) -> HandoverNote:
    """Create a handoff note for the next user on call.

    Raise InvalidError for an invalid text, and NotFoundError if the schedule does not exist.
    """
    schedule = get_row(work, holder, schedule_id)
    text = checked_lines(new.text, "text", LONGEST_HANDOVER_NOTE)
    if not text:
        raise InvalidError("Enter a note for the next person on call.", field="text")
    row = OnCallHandoverNote(
        schedule_id=schedule.id,
        user_id=work.actor.id,
        text=text,
        created_at=work.now,
    )
    work.session.add(row)
    work.session.flush()  # This assigns the id.
    details = {holder.namespace.resource_type: holder.path, "note_id": row.id}
    work.record(EventKind.HANDOVER_NOTE_CREATED, subject=schedule.name, details=details)
    return _get(work, holder, schedule.id, row.id)


@action("on_call_handover_notes.delete")
def delete_handover_note(
    work: Work, holder: Holder, schedule_id: int | str, note_id: int
) -> HandoverNote:
    """Delete a handoff note.

    Maintainers can delete all notes, other users only their own. The response contains the deleted
    note.

    Raise NotFoundError if it does not exist, and ForbiddenError for another user's note.
    """
    schedule = get_row(work, holder, schedule_id)
    gone = _get(work, holder, schedule.id, note_id)
    row = work.session.get_one(OnCallHandoverNote, note_id)
    if row.user_id != work.actor.id and not holder.can_maintain:
        message = "You need the Maintainer role to delete notes of other users."
        raise ForbiddenError(message)
    work.session.delete(row)
    details = {holder.namespace.resource_type: holder.path, "note_id": note_id}
    work.record(EventKind.HANDOVER_NOTE_REMOVED, subject=schedule.name, details=details)
    return gone


def _get(work: Work, holder: Holder, schedule_id: int, note_id: int) -> HandoverNote:
    note = OnCallHandoverNote
    wanted = selected_notes(belongs_to(OnCallSchedule, holder)).where(
        note.schedule_id == schedule_id, note.id == note_id
    )
    row = work.session.execute(wanted).one_or_none()
    if row is None:
        raise NotFoundError(f"Handoff note {note_id} not found in this schedule.")
    return note_of(row)
