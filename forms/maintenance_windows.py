"""Form for the times of a maintenance window and the alerts that it mutes."""

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
    MAX_INTERVAL,
    WEEKDAY_NAMES,
    Frequency,
    Recurrence,
    build_monthly_day_rule,
    build_monthly_weekday_rule,
    parse_recurrence_rule,
)
from domain.paging.maintenance_windows.types import (
    MAX_WINDOW_NAME_LENGTH,
    MaintenanceWindow,
    NewWindow,
)
from forms.alerts import SEVERITY_CHOICES
from forms.base import (
    DurationField,
    Form,
    LocalTimeField,
    TextLineField,
    TextLinesField,
    TimeZoneField,
    limit_length,
    split_lines,
)

ONCE, DAILY, WEEKLY, RULE = "once", "daily", "weekly", "rule"
BY_DAY, BY_WEEKDAY = "monthly_day", "monthly_weekday"
_REPEAT_CHOICES = (
    (ONCE, "Does not repeat"),
    (DAILY, "Every day"),
    (WEEKLY, "Every week"),
    (BY_DAY, "Every month, on the same day"),
    (BY_WEEKDAY, "Every month, on the same weekday"),
    (RULE, "Custom rule"),
)
_MONTHLY_RULES = {BY_DAY: build_monthly_day_rule, BY_WEEKDAY: build_monthly_weekday_rule}
_INTERVAL_MESSAGE = f"Enter a number from 1 to {MAX_INTERVAL}."


class MaintenanceWindowForm(Form):
    """The form for the times of a maintenance window and the alerts that it mutes."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as Database upgrade."),
        limit_length(MAX_WINDOW_NAME_LENGTH, "A name"),
    )
    starts_at = LocalTimeField("Start", InputRequired("Enter the start of the window."))
    time_zone = TimeZoneField(default="UTC")
    duration = DurationField(
        "Duration", DataRequired("Enter a duration, such as 90m or 2h."), default="2h"
    )
    repeats = SelectField("Repeats", choices=_REPEAT_CHOICES, default=ONCE)
    interval = IntegerField(
        "Repeat every … days, weeks or months",
        default=1,
        validators=[Optional(), NumberRange(1, MAX_INTERVAL, message=_INTERVAL_MESSAGE)],
    )
    weekdays = SelectMultipleField("Repeat on", choices=list(WEEKDAY_NAMES.items()))
    until = DateField("Last day", validators=[Optional()])
    rule = TextLineField("Rule")
    severities = SelectMultipleField("Severities", choices=SEVERITY_CHOICES)
    environments = TextAreaField("Environments")
    services = TextAreaField("Services")
    labels = TextLinesField("Labels")

    def build_window(self) -> NewWindow:
        """Return the entered values as the request body for a new maintenance window.

        Raise InvalidError for invalid values.
        """
        local_start = cast("datetime", self.starts_at.data)
        recurrence = self._build_recurrence(local_start.date())
        return self.build_entered_body(
            NewWindow,
            starts_at=local_start.isoformat(),
            rule=recurrence.rule if recurrence else "",
            severities=self.severities.data or [],
            environments=split_lines(self.environments.data),
            services=split_lines(self.services.data),
            labels=self.labels.data or [],
        )

    def _build_recurrence(self, first_day: date) -> Recurrence | None:
        interval, until = self.interval.data or 1, self.until.data
        if self.repeats.data in _MONTHLY_RULES:
            return _MONTHLY_RULES[self.repeats.data](first_day, interval=interval, until=until)
        if self.repeats.data == RULE:
            return parse_recurrence_rule(self.rule.data or "")
        if self.repeats.data == ONCE:
            return None
        is_weekly = self.repeats.data == WEEKLY
        return Recurrence(
            frequency=Frequency.WEEKLY if is_weekly else Frequency.DAILY,
            interval=interval,
            by_day=tuple(self.weekdays.data or ()) if is_weekly else (),
            until=until,
        )


def build_window_form(window: MaintenanceWindow) -> MaintenanceWindowForm:
    """Return the form with the submitted values, if any, or the values of a window."""
    recurrence = parse_recurrence_rule(window.rule) if window.rule else None
    return MaintenanceWindowForm(
        data={
            "name": window.name,
            "starts_at": window.local_start,
            "time_zone": window.time_zone,
            "duration": window.duration,
            **_build_repeat_fields(recurrence, window.local_start.date()),
            "severities": window.severities,
            "environments": "\n".join(window.environments),
            "services": "\n".join(window.services),
            "labels": "\n".join(window.labels),
        }
    )


def _build_repeat_fields(recurrence: Recurrence | None, first_day: date) -> dict[str, object]:
    """Return the form fields that describe the recurrence of a window."""
    if recurrence is None:
        return {"repeats": ONCE}
    return {
        "repeats": _find_repeat_choice(recurrence, first_day),
        "interval": recurrence.interval,
        "until": recurrence.until,
        "weekdays": list(recurrence.by_day),
        "rule": recurrence.rule,
    }


def _find_repeat_choice(recurrence: Recurrence, first_day: date) -> str:
    if recurrence.frequency is not Frequency.MONTHLY:
        return DAILY if recurrence.frequency is Frequency.DAILY else WEEKLY
    for word, rule in _MONTHLY_RULES.items():
        if recurrence == rule(first_day, interval=recurrence.interval, until=recurrence.until):
            return word
    return RULE
