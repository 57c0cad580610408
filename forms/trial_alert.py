"""The form to send a test alert."""

from wtforms import TextAreaField
from wtforms.validators import InputRequired

from forms.base import Form


class TestAlertForm(Form):
    """The payload of a test alert; it is validated by the receiver."""

    #: Tells pytest that the class is no test case in spite of its name.
    __test__ = False

    payload = TextAreaField("Payload (JSON)", validators=[InputRequired("Enter a JSON object.")])
