"""The form for a new key that signs registry tokens."""

from wtforms import RadioField
from wtforms.validators import InputRequired

from domain.registry.types import NewRegistryKey
from forms.base import Form

#: By its name: what it says, and the hours until the key signs.
_CHOICES = {
    "day": ("In 24 hours", 24),
    "week": ("In 7 days", 168),
    "now": ("Immediately", 0),
    "leaked": ("Immediately, and withdraw the former keys", 0),
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
    def key(self) -> NewRegistryKey:
        """What was chosen."""
        name = self.notice.data
        return NewRegistryKey(notice_hours=_CHOICES[name][1], forget_former=name == "leaked")
