"""The form that sends a test alert."""

from wtforms import TextAreaField
from wtforms.validators import InputRequired

from forms.base import Form


class TestAlertForm(Form):
    """A payload as a monitoring system would send it; the receiver itself judges the JSON."""

    #: Not a test case, whatever its name makes pytest think.
    __test__ = False

    payload = TextAreaField("Payload (JSON)", validators=[InputRequired("Enter a JSON object.")])

    @property
    def body(self) -> bytes:
        """What would come over the wire."""
        return (self.payload.data or "").encode("utf-8", "surrogatepass")
