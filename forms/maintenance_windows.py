"""The form for a maintenance window."""

from datetime import date, datetime
from typing import cast

from wtforms import (
    DateField,
    IntegerField,
    SelectField,
    SelectMultipleField,
    TextAreaField,
)
from wtforms.validators import DataRequired, InputRequired, NumberRange, Optional

from domain.paging.maintenance_windows.recurrence import (
    LARGEST_INTERVAL,
    WEEKDAYS,
    Frequency,
    Recurrence,
    monthly_by_day,
    monthly_by_weekday,
    parse_rule,
)
from domain.paging.maintenance_windows.types import LONGEST_NAME, MaintenanceWindow, NewWindow
from forms.alerts import SEVERITY_CHOICES
from forms.base import (
    DurationLine,
    Form,
    Line,
    Lines,
    LocalTimeField,
    TimeZoneField,
    at_most,
    lines_of,
)

ONCE, DAILY, WEEKLY, RULE = "once", "daily", "weekly", "rule"
BY_DAY, BY_WEEKDAY = "monthly_day", "monthly_weekday"
_REPEATS = (
    (ONCE, "Does not repeat"),
    (DAILY, "Every day"),
    (WEEKLY, "Every week"),
    (BY_DAY, "Every month, on the same day"),
    (BY_WEEKDAY, "Every month, on the same weekday"),
    (RULE, "Custom rule"),
)
_BY_MONTH = {BY_DAY: monthly_by_day, BY_WEEKDAY: monthly_by_weekday}
_INTERVAL = f"Enter a number from 1 to {LARGEST_INTERVAL}."


class MaintenanceWindowForm(Form):
    """The form for the times of a maintenance window and the alerts that it mutes."""

    name = Line(
        "Name",
        DataRequired("Enter a name, such as Database upgrade."),
        at_most(LONGEST_NAME, "A name"),
    )
    starts_at = LocalTimeField("Start", InputRequired("Enter the start of the window."))
    time_zone = TimeZoneField(default="UTC")
    duration = DurationLine(
        "Duration", DataRequired("Enter a duration, such as 90m or 2h."), default="2h"
    )
    repeats = SelectField("Repeats", choices=_REPEATS, default=ONCE)
    interval = IntegerField(
        "Repeat every … days, weeks or months",
        default=1,
        validators=[Optional(), NumberRange(1, LARGEST_INTERVAL, message=_INTERVAL)],
    )
    weekdays = SelectMultipleField("Repeat on", choices=list(WEEKDAYS.items()))
    until = DateField("Last day", validators=[Optional()])
    rule = Line("Rule")
    severities = SelectMultipleField("Severities", choices=SEVERITY_CHOICES)
    environments = TextAreaField("Environments")
    services = TextAreaField("Services")
    labels = Lines("Labels")

    def window(self) -> NewWindow:
        """Return the entered window.

        Raise InvalidError for invalid values.
        """
        local_start = cast("datetime", self.starts_at.data)
        recurrence = self._recurrence(local_start.date())
        return self.read(
            NewWindow,
            starts_at=local_start.isoformat(),
            rule=recurrence.rule if recurrence else "",
            severities=self.severities.data or [],
            environments=lines_of(self.environments.data),
            services=lines_of(self.services.data),
            labels=self.labels.data or [],
        )

    def _recurrence(self, first: date) -> Recurrence | None:
        interval, until = self.interval.data or 1, self.until.data
        if self.repeats.data in _BY_MONTH:
            return _BY_MONTH[self.repeats.data](first, interval=interval, until=until)
        if self.repeats.data == RULE:
            return parse_rule(self.rule.data or "")
        if self.repeats.data == ONCE:
            return None
        is_weekly = self.repeats.data == WEEKLY
        return Recurrence(
            frequency=Frequency.WEEKLY if is_weekly else Frequency.DAILY,
            interval=interval,
            by_day=tuple(self.weekdays.data or ()) if is_weekly else (),
            until=until,
        )


def form_of(window: MaintenanceWindow) -> MaintenanceWindowForm:
    """Return the form with the values of a window, unless the request sends values."""
    recurrence = parse_rule(window.rule) if window.rule else None
    return MaintenanceWindowForm(
        data={
            "name": window.name,
            "starts_at": window.local_start,
            "time_zone": window.time_zone,
            "duration": window.duration,
            **_repeats_of(recurrence, window.local_start.date()),
            "severities": window.severities,
            "environments": "\n".join(window.environments),
            "services": "\n".join(window.services),
            "labels": "\n".join(window.labels),
        }
    )


def _repeats_of(found: Recurrence | None, first: date) -> dict[str, object]:
    """Return the form fields that describe the recurrence of a window."""
    if found is None:
        return {"repeats": ONCE}
    return {
        "repeats": _word_for(found, first),
        "interval": found.interval,
        "until": found.until,
        "weekdays": list(found.by_day),
        "rule": found.rule,
    }


def _word_for(found: Recurrence, first: date) -> str:
    if found.frequency is not Frequency.MONTHLY:
        return DAILY if found.frequency is Frequency.DAILY else WEEKLY
    for word, rule in _BY_MONTH.items():
        if found == rule(first, interval=found.interval, until=found.until):
            return word
    return RULE
