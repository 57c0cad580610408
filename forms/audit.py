"""The filter form of the audit log."""

from datetime import UTC, date, datetime, time, timedelta

from flask import request
from wtforms import SelectField, StringField
from wtforms.validators import Length, Optional

from domain.audit.log import KINDS, EventFilter
from forms.access_token import DayField
from forms.base import Form, without_edges

_A_NAME = Length(max=255, message="A user name has at most 255 characters.")


class AuditFilterForm(Form):
    """The filter of the audit log; every field is optional."""

    kind = SelectField("Event", choices=[("", "Any event"), *KINDS], default="")
    actor = StringField("Done by", filters=[without_edges], validators=[Optional(), _A_NAME])
    user = StringField("Account", filters=[without_edges], validators=[Optional(), _A_NAME])
    since = DayField("From", validators=[Optional()])
    until = DayField("Until", validators=[Optional()])

    def __init__(self) -> None:
        """Read the values from the query, without CSRF protection."""
        super().__init__(formdata=request.args, meta={"csrf": False})

    def wanted(self) -> EventFilter:
        """Return the filter; the last day is included."""
        return EventFilter(
            kind=self.kind.data or "",
            actor=self.actor.data or "",
            user=self.user.data or "",
            since=_midnight(self.since.data),
            until=_midnight(self.until.data, timedelta(days=1)),
        )


def _midnight(day: date | None, later: timedelta = timedelta()) -> datetime | None:
    try:
        return datetime.combine(day + later, time(), tzinfo=UTC) if day else None
    except OverflowError:  # the last day that there can be
        return None
