"""Forms of hand-over notes, and of documents after incidents."""

from wtforms import HiddenField, TextAreaField
from wtforms.validators import DataRequired

from domain.reports.types import LONGEST_DOCUMENT, LONGEST_HANDOVER_NOTE
from forms.base import Form, at_most


class HandoverNoteForm(Form):
    """What whoever is on call next has to know."""

    text = TextAreaField(
        "Note",
        validators=[
            DataRequired("Enter what whoever is next has to know."),
            at_most(LONGEST_HANDOVER_NOTE, "A note"),
        ],
    )


class IncidentDocumentForm(Form):
    """The text of a document, and the revision that was changed."""

    text = TextAreaField("Document", validators=[at_most(LONGEST_DOCUMENT, "A document")])
    revision = HiddenField()
