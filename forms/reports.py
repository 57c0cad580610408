"""Forms for handoff notes and post-incident documents."""

from wtforms import HiddenField, TextAreaField
from wtforms.validators import DataRequired

from domain.reports.types import MAX_DOCUMENT_LENGTH, MAX_HANDOFF_NOTE_LENGTH
from forms.base import Form, limit_length


class HandoffNoteForm(Form):
    """The form for a handoff note to the next user on call."""

    text = TextAreaField(
        "Note",
        validators=[
            DataRequired("Enter a note for the next user on call."),
            limit_length(MAX_HANDOFF_NOTE_LENGTH, "A note"),
        ],
    )


class IncidentDocumentForm(Form):
    """The form for the text of a document and the revision that it was based on."""

    text = TextAreaField("Document", validators=[limit_length(MAX_DOCUMENT_LENGTH, "A document")])
    revision = HiddenField()
