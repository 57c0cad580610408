"""The form that makes a new key for ID tokens."""

from wtforms import RadioField
from wtforms.validators import InputRequired

from domain.oauth.openid.keys import Handover
from forms.base import Form

_WORDS = {
    Handover.AFTER_NOTICE: "In an hour, when everybody can know it",
    Handover.AT_ONCE: "At once",
    Handover.OLD_KEYS_LEAKED: "At once, and the old keys are void",
}


class RotationForm(Form):
    """When the new key takes over."""

    handover = RadioField(
        "When does the new key sign?",
        choices=[(each.value, words) for each, words in _WORDS.items()],
        default=Handover.AFTER_NOTICE.value,
        validators=[InputRequired("Choose when the new key signs.")],
    )

    @property
    def chosen(self) -> Handover:
        """What was chosen."""
        return Handover(self.handover.data)
