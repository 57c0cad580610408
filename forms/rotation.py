"""The form for a new key that signs ID tokens."""

from wtforms import RadioField
from wtforms.validators import InputRequired

from domain.oauth.openid.keys import KeyRotation
from forms.base import Form

_WORDS = {
    KeyRotation.AFTER_NOTICE: "In an hour, when everybody can know it",
    KeyRotation.AT_ONCE: "At once",
    KeyRotation.OLD_KEYS_LEAKED: "At once, and the old keys are void",
}


class RotationForm(Form):
    """When the new key is first used."""

    handover = RadioField(
        "When does the new key sign?",
        choices=[(each.value, words) for each, words in _WORDS.items()],
        default=KeyRotation.AFTER_NOTICE.value,
        validators=[InputRequired("Choose when the new key signs.")],
    )

    @property
    def chosen(self) -> KeyRotation:
        """What was chosen."""
        return KeyRotation(self.handover.data)
