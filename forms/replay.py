"""The form that replays refused deliveries."""

from datetime import timedelta

from wtforms import IntegerField, SelectField
from wtforms.validators import NumberRange, Optional
from wtforms.widgets import HiddenInput

from domain.database.paging import LARGEST_ID
from forms.base import Form

_PERIODS = {
    "hour": ("last hour", timedelta(hours=1)),
    "day": ("last 24 hours", timedelta(days=1)),
    "week": ("last 7 days", timedelta(days=7)),
    "month": ("last 30 days", timedelta(days=30)),
}


class ReplayForm(Form):
    """The refused deliveries of which period, and after which one to go on."""

    period = SelectField(
        "Rejected in the",
        choices=[(key, words) for key, (words, _) in _PERIODS.items()],
        default="day",
    )
    after = IntegerField(widget=HiddenInput(), validators=[Optional(), NumberRange(0, LARGEST_ID)])

    @property
    def length(self) -> timedelta:
        """How long before now the period begins."""
        return _PERIODS[str(self.period.data)][1]
