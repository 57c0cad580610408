"""The form for a new key that signs ID tokens."""

from wtforms import RadioField
from wtforms.validators import InputRequired

from domain.oauth.openid.keys import KeyRotation
from forms.base import Form

_WORDS = {
    KeyRotation.AFTER_NOTICE: "In one hour, when all clients can have fetched it",
    KeyRotation.AT_ONCE: "Immediately",
    KeyRotation.OLD_KEYS_LEAKED: "Immediately, and delete the old keys",
}


class RotationForm(Form):
    """The time at which the new key starts signing."""

    handover = RadioField(
        "When does the new key start signing?",
        choices=[(each.value, words) for each, words in _WORDS.items()],
        default=KeyRotation.AFTER_NOTICE.value,
        validators=[InputRequired("Choose when the new key starts signing.")],
    )
