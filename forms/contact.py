"""Forms for contacts of people, channels of projects, and how people want to be paged."""

from zoneinfo import available_timezones

from wtforms import BooleanField, RadioField, SelectField, StringField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.notifications.contacts import ContactType
from domain.notifications.quiet_hours import QuietHours, minutes_of, written_time
from domain.notifications.recipients import PagingPreferences
from forms.base import Form, without_edges


class ContactForm(Form):
    """A contact, or a channel, to add."""

    type = RadioField(
        "Type",
        choices=[(ContactType.EMAIL.value, "Email"), (ContactType.APPRISE.value, "Other service")],
        default=ContactType.EMAIL.value,
        validators=[InputRequired("Choose a type.")],
    )
    address = StringField(
        "Address",
        filters=[without_edges],
        validators=[
            DataRequired("Enter an e-mail address, or the URL of a service."),
            Length(max=1_000, message="An address may have at most 1000 characters."),
        ],
    )
    label = StringField(
        "Label",
        filters=[without_edges],
        validators=[Length(max=100, message="A label may have at most 100 characters.")],
    )


class CodeForm(Form):
    """The code that was sent to a contact."""

    code = StringField(
        "Code",
        filters=[without_edges],
        validators=[
            DataRequired("Enter the code that was sent."),
            Length(max=20, message="The code has six digits."),
        ],
    )


class PagingPreferencesForm(Form):
    """Quiet hours and follow-ups of a person."""

    quiet_from = StringField("From", filters=[without_edges])
    quiet_until = StringField("Until", filters=[without_edges])
    time_zone = SelectField(
        "Time zone", choices=[(each, each) for each in sorted(available_timezones())], default="UTC"
    )
    critical_breaks_quiet = BooleanField("Page me about critical alerts anyway", default=True)
    wants_follow_ups = BooleanField(
        "Tell me when somebody else acknowledged an alert, it was resolved, or I was assigned",
        default=True,
    )

    @classmethod
    def of(cls, preferences: PagingPreferences, time_zone: str = "UTC") -> "PagingPreferencesForm":
        """Return the form with the present values."""
        quiet = preferences.quiet_hours
        return cls(
            quiet_from=written_time(quiet.starts) if quiet else "",
            quiet_until=written_time(quiet.ends) if quiet else "",
            time_zone=quiet.time_zone if quiet else time_zone,
            critical_breaks_quiet=quiet is None or quiet.lets_critical_through,
            wants_follow_ups=preferences.wants_follow_ups,
        )

    @property
    def preferences(self) -> PagingPreferences:
        """The entered preferences; raises InvalidError."""
        starts, ends = self.quiet_from.data or "", self.quiet_until.data or ""
        quiet = None
        if starts or ends:
            quiet = QuietHours(
                time_zone=self.time_zone.data,
                starts=minutes_of(starts, field="quiet_from"),
                ends=minutes_of(ends, field="quiet_until"),
                lets_critical_through=self.critical_breaks_quiet.data,
            )
        return PagingPreferences(quiet_hours=quiet, wants_follow_ups=self.wants_follow_ups.data)
