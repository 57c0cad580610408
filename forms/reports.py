"""Forms for handoff notes and post-incident documents."""

from wtforms import HiddenField, TextAreaField
from wtforms.validators import DataRequired

from domain.reports.types import LONGEST_DOCUMENT, LONGEST_HANDOVER_NOTE
from forms.base import Form, at_most


class HandoverNoteForm(Form):
    """The form for a handoff note to the next user on call."""

    text = TextAreaField(
        "Note",
        validators=[
            DataRequired("Enter a note for the next user on call."),
            at_most(LONGEST_HANDOVER_NOTE, "A note"),
        ],
    )


class IncidentDocumentForm(Form):
    """The form for the text of a document and the revision that it was based on."""

    text = TextAreaField("Document", validators=[at_most(LONGEST_DOCUMENT, "A document")])
    revision = HiddenField()
