"""The filter form of the audit log."""

from datetime import UTC, date, datetime, time, timedelta
from ipaddress import ip_address

from flask import request
from wtforms import SelectField, StringField
from wtforms.validators import Optional, ValidationError

from domain.audit.log import KINDS, EventFilter
from forms.access_token import DayField
from forms.base import Form, Line, at_most

_LONGEST = at_most(255, "The target")
_A_NAME = at_most(255, "A user name")


class AuditFilterForm(Form):
    """The filter form of the audit log. Every field is optional."""

    kind = SelectField("Event", choices=[("", "Any event"), *KINDS], default="")
    actor = Line("Done by", Optional(), _A_NAME)
    user = Line("Account", Optional(), _A_NAME)
    target = Line("Target", Optional(), _LONGEST)
    address = Line("IP address", Optional())
    since = DayField("From", validators=[Optional()])
    until = DayField("Until", validators=[Optional()])

    def __init__(self) -> None:
        """Read the values from the query without CSRF protection."""
        super().__init__(formdata=request.args, meta={"csrf": False})

    def validate_address(self, field: StringField) -> None:
        """Check that the text is an IP address."""
        try:
            _as_stored(field.data or "")
        except ValueError as error:
            raise ValidationError("Enter an IP address such as 192.0.2.1.") from error

    def wanted(self) -> EventFilter:
        """Return the filter; the last day is included."""
        return EventFilter(
            kind=self.kind.data or "",
            actor=self.actor.data or "",
            user=self.user.data or "",
            target=self.target.data or "",
            address=_as_stored(self.address.data or ""),
            since=_midnight(self.since.data),
            until=_midnight(self.until.data, timedelta(days=1)),
        )


def _as_stored(address: str) -> str:
    """Return an IP address in canonical form.

    Raise ValueError if the text is not an IP address.
    """
    return str(ip_address(address)) if address else ""


def _midnight(day: date | None, later: timedelta = timedelta()) -> datetime | None:
    try:
        return datetime.combine(day + later, time(), tzinfo=UTC) if day else None
    except OverflowError:  # the last day that dates can represent
        return None
