"""The form of the consent page."""

from wtforms import HiddenField, StringField
from wtforms.validators import AnyOf, InputRequired

from forms.base import Form


class ConsentForm(Form):
    """A yes or a no to one request."""

    request = HiddenField(
        validators=[InputRequired("This page is incomplete: go back to the application.")]
    )
    decision = StringField(
        validators=[AnyOf(["authorize", "cancel"], message="Choose to authorize or to cancel.")]
    )

    @property
    def is_authorized(self) -> bool:
        """Whether the user said yes."""
        return self.decision.data == "authorize"
