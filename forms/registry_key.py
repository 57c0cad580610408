"""The form for a new key that signs registry tokens."""

from datetime import timedelta

from wtforms import RadioField
from wtforms.validators import InputRequired

from forms.base import Form

_CHOICES = {
    "day": ("In 24 hours", timedelta(hours=24)),
    "week": ("In 7 days", timedelta(days=7)),
    "now": ("Immediately", timedelta(0)),
    "leaked": ("Immediately, and withdraw the former keys", timedelta(0)),
}


class RegistryKeyForm(Form):
    """The time at which the new key starts signing."""

    notice = RadioField(
        "When does the new key start signing?",
        choices=[(name, words) for name, (words, _) in _CHOICES.items()],
        default="day",
        validators=[InputRequired("Choose when the new key starts signing.")],
    )

    @property
    def chosen(self) -> timedelta:
        """The time until it signs."""
        return _CHOICES[self.notice.data][1]

    @property
    def forgets_former(self) -> bool:
        """Whether the former keys are withdrawn at once."""
        return bool(self.notice.data == "leaked")
