"""The form that narrows the audit trail down."""

from datetime import UTC, date, datetime, time, timedelta

from flask import request
from wtforms import SelectField, StringField
from wtforms.validators import Length, Optional

from domain.audit.log import KINDS, EventFilter
from forms.access_token import DayField
from forms.base import Form, without_edges

_A_NAME = Length(max=255, message="A user name has at most 255 characters.")


class AuditFilterForm(Form):
    """What an administrator wants to see of it; every field may stay empty."""

    kind = SelectField("What happened", choices=[("", "Anything"), *KINDS], default="")
    actor = StringField("Done by", filters=[without_edges], validators=[Optional(), _A_NAME])
    user = StringField("Account", filters=[without_edges], validators=[Optional(), _A_NAME])
    since = DayField("From", validators=[Optional()])
    until = DayField("Until", validators=[Optional()])

    def __init__(self) -> None:
        """Take the values from the address: nothing is changed, so there is nothing to forge."""
        super().__init__(formdata=request.args, meta={"csrf": False})

    def wanted(self) -> EventFilter:
        """Return the filter; the last day is wanted with all its hours."""
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
