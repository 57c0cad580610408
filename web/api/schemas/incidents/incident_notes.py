"""The timeline of an incident: comments and changes, in the shape of GitLab's notes."""

from typing import Literal

from pydantic import Field

from domain.database.paging import Slice, read_cursor
from domain.incidents.notes import NoteText
from domain.incidents.sentences import sentence_of
from domain.incidents.timeline import EntryFilter, EntryKind, TimelineEntry
from web.api.schemas.base import Body, KeysetQuery, Resource, Text, Time
from web.api.schemas.incidents.incidents import IncidentPerson


class IncidentNoteQuery(KeysetQuery):
    """Which entries of the timeline a list has, and in which order."""

    sort: Literal["desc", "asc"] = Field(default="desc", description="The newest or oldest first.")
    order_by: Literal["created_at"] = "created_at"
    activity_filter: EntryFilter = EntryFilter.ALL

    @property
    def part(self) -> Slice:
        """The requested part; raises QueryError for a forged cursor."""
        return Slice(size=self.size, before=read_cursor(self.cursor))


class _NoteFields(Body):
    internal: bool | None = Field(
        default=None, description="Whether only members from Reporter up see the comment."
    )
    confidential: bool | None = Field(default=None, description="A former name of `internal`.")

    @property
    def is_internal(self) -> bool | None:
        """Whether it is internal, by either name; None if it is not said."""
        return self.confidential if self.internal is None else self.internal


class IncidentNoteBody(_NoteFields):
    """A new comment."""

    body: Text = Field(default="", description="Markdown.")

    @property
    def note(self) -> NoteText:
        """The comment."""
        return NoteText(text=self.body, is_internal=self.is_internal)


class IncidentNoteChange(_NoteFields):
    """Changes to a comment; omitted fields are kept."""

    body: Text | None = Field(default=None, description="Markdown.")

    @property
    def note(self) -> NoteText:
        """The change."""
        return NoteText(text=self.body, is_internal=self.is_internal)


class IncidentNote(Resource):
    """An entry of the timeline."""

    id: int
    kind: EntryKind
    body: str = Field(description="The comment in Markdown, or what happened.")
    author: IncidentPerson | None = Field(
        description="Null for what rules and the command line did."
    )
    system: bool = Field(description="Whether it is about a change of the incident.")
    internal: bool
    confidential: bool = Field(description="A former name of `internal`.")
    noteable_type: Literal["Incident"] = "Incident"
    noteable_id: int
    noteable_iid: int
    project_id: int
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, entry: TimelineEntry, *, project_id: int, iid: int) -> "IncidentNote":
        """Present an entry of the incident with this number."""
        return cls(
            id=entry.id,
            kind=entry.kind,
            body=sentence_of(entry),
            author=IncidentPerson.of(entry.user),
            system=not entry.is_comment,
            internal=entry.is_internal,
            confidential=entry.is_internal,
            noteable_id=entry.incident_id,
            noteable_iid=iid,
            project_id=project_id,
            created_at=entry.created_at,
            updated_at=entry.updated_at,
        )
