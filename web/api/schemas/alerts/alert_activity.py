"""What happened to an alert: notes, the activity, and the reports of senders."""

from pydantic import Field

from domain.alerts.handling.activity import ActivityView, FieldChange, NoteKind
from domain.alerts.handling.occurrences import OccurrenceView
from domain.alerts.storing.lifecycle import Action
from domain.types.base import Body, KeysetQuery, Resource, Text, Time


class ActivityQuery(KeysetQuery):
    """A list of what happened to an alert, the newest first."""


class AlertNoteBody(Body):
    """A new note."""

    body: Text = Field(default="", description="Plain text; Markdown is kept as it is written.")


class AlertAuthor(Resource):
    """A user who did something to an alert."""

    id: int | None = Field(description="Null if the account was deleted.")
    username: str


class AlertNote(Resource):
    """A note that a user wrote about an alert."""

    id: int
    body: str
    author: AlertAuthor
    created_at: Time

    @classmethod
    def of(cls, view: ActivityView) -> "AlertNote":
        """Present a note."""
        author = AlertAuthor(id=view.user_id, username=view.user_name)
        return cls(id=view.id, body=view.text, author=author, created_at=view.created_at)


class AlertChange(Resource):
    """A field of an alert before and after a report; null for no value."""

    field: str
    old: str | None
    new: str | None

    @classmethod
    def of(cls, change: FieldChange) -> "AlertChange":
        """Present a change."""
        return cls(field=change.field.replace(" ", "_"), old=change.old, new=change.new)


class AlertActivity(Resource):
    """An entry of the activity of an alert."""

    id: int
    kind: NoteKind
    author: AlertAuthor | None = Field(
        description="Null for a change by a report or by the command line."
    )
    text: str = Field(
        description="The note, the new status, the new assignee, empty for nobody, or what came of "
        "a page to the author."
    )
    via: str | None = Field(
        description="From where the author acted, if it was no page and no token."
    )
    changes: tuple[AlertChange, ...] = Field(description="Fields that a report changed.")
    created_at: Time

    @classmethod
    def of(cls, view: ActivityView) -> "AlertActivity":
        """Present an entry."""
        has_author = view.kind is not NoteKind.CHANGE and view.user_name
        return cls(
            id=view.id,
            kind=view.kind,
            author=(AlertAuthor(id=view.user_id, username=view.user_name) if has_author else None),
            text=view.text,
            via=view.via,
            changes=tuple(map(AlertChange.of, view.changes)),
            created_at=view.created_at,
        )


class AlertOccurrence(Resource):
    """A report of an alert: an item of a delivery."""

    received_at: Time
    action: Action
    sender: str = Field(description="An IP address, or the user who sent a test alert.")
    is_test: bool
    item: int = Field(description="Its position in the body, from 1.")
    delivery_id: int
    integration_id: int | None = Field(description="Null if the integration was deleted.")

    @classmethod
    def of(cls, view: OccurrenceView) -> "AlertOccurrence":
        """Present a report."""
        return cls.model_validate(view)
