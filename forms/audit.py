"""The filter form of the audit log."""

from datetime import date, datetime, time, timedelta
from ipaddress import ip_address

from flask import request
from wtforms import SelectField, StringField
from wtforms.validators import Optional, ValidationError

from domain.audit.log import KIND_TITLES, EventFilter
from domain.core.time_zones import convert_to_utc, get_zone
from forms.access_token import DateWithHintField
from forms.base import Form, TextLineField, limit_length

_TEXT_LENGTH_LIMIT = limit_length(255, "The target")
_NAME_LENGTH_LIMIT = limit_length(255, "A username")


class AuditFilterForm(Form):
    """The filter form of the audit log. Every field is optional."""

    kind = SelectField("Event", choices=[("", "Any event"), *KIND_TITLES], default="")
    actor = TextLineField("Done by", Optional(), _NAME_LENGTH_LIMIT)
    user = TextLineField("Account", Optional(), _NAME_LENGTH_LIMIT)
    target = TextLineField("Target", Optional(), _TEXT_LENGTH_LIMIT)
    address = TextLineField("IP address", Optional())
    since = DateWithHintField("From", validators=[Optional()])
    until = DateWithHintField("Until", validators=[Optional()])

    def __init__(self, time_zone: str) -> None:
        """Read the values from the query without CSRF protection.

        Days start and end in `time_zone`.
        """
        self._zone = get_zone(time_zone)
        super().__init__(formdata=request.args, meta={"csrf": False})

    def validate_address(self, field: StringField) -> None:
        """Check that the entered text is an IP address.

        Raise ValidationError for any other text.
        """
        try:
            _normalize_address(field.data or "")
        except ValueError as error:
            raise ValidationError("Enter an IP address such as 192.0.2.1.") from error

    def build_filter(self) -> EventFilter:
        """Return the entered filter, which includes the last day."""
        return EventFilter(
            kind=self.kind.data or "",
            actor=self.actor.data or "",
            user=self.user.data or "",
            target=self.target.data or "",
            address=_normalize_address(self.address.data or ""),
            since=self._build_midnight(self.since.data),
            until=self._build_midnight(self.until.data, timedelta(days=1)),
        )

    def _build_midnight(self, day: date | None, later: timedelta = timedelta()) -> datetime | None:
        try:
            local = datetime.combine(day + later, time()) if day else None
            return local and convert_to_utc(local, self._zone)
        except OverflowError:  # The day is the first or last day that dates can represent.
            return None


def _normalize_address(address: str) -> str:
    """Return an IP address in canonical form.

    Raise ValueError if the text is not an IP address.
    """
    return str(ip_address(address)) if address else ""
