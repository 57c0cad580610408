"""Forms for keys that sign ID tokens and container registry tokens."""

from wtforms import RadioField
from wtforms.validators import InputRequired

from domain.oauth.openid.signing_keys import KeyRotation
from domain.registry.types import NewRegistryKey
from forms.base import Form

_ROTATION_LABELS = {
    KeyRotation.AFTER_NOTICE: "In one hour, when all clients have had time to fetch it",
    KeyRotation.AT_ONCE: "Immediately",
    KeyRotation.OLD_KEYS_LEAKED: "Immediately, and delete the old keys",
}


class SigningKeyRotationForm(Form):
    """The form for the time at which a new key for ID tokens starts signing."""

    handover = RadioField(
        "When does the new key start signing?",
        choices=[(each.value, words) for each, words in _ROTATION_LABELS.items()],
        default=KeyRotation.AFTER_NOTICE.value,
        validators=[InputRequired("Choose when the new key starts signing.")],
    )


#: Label of each choice, and the number of hours until the key starts signing.
_NOTICE_CHOICES = {
    "day": ("In 24 hours", 24),
    "week": ("In 7 days", 168),
    "now": ("Immediately", 0),
    "leaked": ("Immediately, and revoke the previous keys", 0),
}


class RegistryKeyForm(Form):
    """The form for the time at which a new registry key starts signing."""

    notice = RadioField(
        "When does the new key start signing?",
        choices=[(name, words) for name, (words, _) in _NOTICE_CHOICES.items()],
        default="day",
        validators=[InputRequired("Choose when the new key starts signing.")],
    )

    @property
    def requested_key(self) -> NewRegistryKey:
        """The notice period for the new key, and whether to discard the previous key."""
        name = self.notice.data
        return NewRegistryKey(notice_hours=_NOTICE_CHOICES[name][1], forget_former=name == "leaked")
