"""Forms for users' contacts, notification channels, notification rules and paging preferences."""

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from wtforms import BooleanField, HiddenField, IntegerField, RadioField, SelectField, StringField
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange, ValidationError

from domain.paging.contacts.rule_types import (
    ALERT_SELECTION_WORDS,
    MAX_RULE_DELAY_MINUTES,
    ContactRule,
    NewContactRule,
)
from domain.paging.contacts.types import ContactBody, ContactPreferencesBody
from domain.paging.notifications.contact_types.base import ContactType
from domain.paging.notifications.contact_types.registry import (
    ADDRESS_WORDS,
    ENTERED_CONTACT_TYPES,
    get_contact_type,
    guess_contact_type,
)
from domain.paging.notifications.contacts import Contact
from domain.paging.notifications.recipients import PagingPreferences, format_minutes_of_day
from domain.paging.on_call.rotation_syntax import format_restriction, parse_restriction
from forms.base import Form, TextLineField, TimeZoneField, limit_length

SomeRule = TypeVar("SomeRule", bound=NewContactRule)
_NO_MAIL_TEXT = "This service cannot send email until an administrator sets MAIL_URL."


class ContactForm(Form):
    """The form for a new contact or channel."""

    type = RadioField(
        "Type",
        choices=[(each.name, each.label) for each in ENTERED_CONTACT_TYPES],
        default=ENTERED_CONTACT_TYPES[0].name,
        validators=[InputRequired("Choose a type.")],
    )
    address = TextLineField(
        "Address", DataRequired(f"Enter {ADDRESS_WORDS}."), limit_length(1000, "An address")
    )
    label = TextLineField("Label", limit_length(100, "A label"))

    @property
    def chosen_type(self) -> ContactType:
        """Type of the contact, which may be guessed from the address."""
        return guess_contact_type(get_contact_type(self.type.data), self.address.data or "")

    @property
    def entered_contact(self) -> ContactBody:
        """The entered contact.

        Raise InvalidError for invalid values.
        """
        return self.build_entered_body(ContactBody, type=self.chosen_type.name)

    @property
    def example(self) -> str:
        """Example addresses for each type."""
        return " or ".join(each.example for each in ENTERED_CONTACT_TYPES)

    def build_type_help(self, *, sends_mail: bool) -> dict[str, str]:
        """Return the help text of each type."""
        return {
            each.name: _NO_MAIL_TEXT if each.uses_mail_server and not sends_mail else each.help
            for each in ENTERED_CONTACT_TYPES
        }


class DeviceForm(Form):
    """The form that a browser sends after it has subscribed to notifications."""

    subscription = HiddenField(validators=[DataRequired("The browser sent no subscription.")])
    label = HiddenField(validators=[limit_length(100, "A label")])


class CodeForm(Form):
    """The form for the code that was sent to a contact."""

    code = TextLineField(
        "Code",
        DataRequired("Enter the code that was sent."),
        Length(max=20, message="The code has six digits."),
    )


class RuleForm(Form):
    """The form for a notification rule."""

    alerts = SelectField(
        "Alerts", choices=[(each.value, words) for each, words in ALERT_SELECTION_WORDS.items()]
    )
    contact_id = SelectField("Contact", coerce=int)
    delay_minutes = IntegerField(
        "Delay (minutes)",
        default=0,
        validators=[
            InputRequired("Enter a number of minutes. 0 means immediately."),
            NumberRange(
                0,
                MAX_RULE_DELAY_MINUTES,
                f"Enter a number of minutes from 0 to {MAX_RULE_DELAY_MINUTES}.",
            ),
        ],
    )
    only = TextLineField("Only at this time", limit_length(100, "A time"))

    @classmethod
    def build_with_contacts(cls, contacts: Iterable[Contact], **given: Any) -> "RuleForm":
        """Return the form for a rule that uses one of these contacts."""
        form = cls(**given)
        form.contact_id.choices = [
            (each.id, each.label)
            for each in contacts
            if each.confirmed_at and not each.is_account_email
        ]
        return form

    @classmethod
    def from_rule(cls, rule: ContactRule, contacts: Iterable[Contact]) -> "RuleForm":
        """Return the form with the current values of a rule."""
        only = format_restriction(rule.only.restriction) if rule.only else ""
        return cls.build_with_contacts(contacts, **{**dict(rule), "only": only})

    def validate_only(self, field: StringField) -> None:
        """Raise ValidationError if the text does not describe a time."""
        text = field.data or ""
        try:
            if text:
                parse_restriction(text)
        except ValueError as error:
            raise ValidationError(f"“{text[:50]}” {error}.") from error

    def build_rule(self, kind: type[SomeRule]) -> SomeRule:
        """Return the entered rule.

        Raise InvalidError for invalid values.
        """
        return self.build_entered_body(kind, only=self.only.data or None)


class PagingPreferencesForm(Form):
    """The form for a user's quiet hours and follow-up messages."""

    fields_of: ClassVar = {"starts_at": "quiet_from", "ends_at": "quiet_until"}

    quiet_from = TextLineField("From")
    quiet_until = TextLineField("Until")
    time_zone = TimeZoneField(default="UTC")
    critical_breaks_quiet = BooleanField("Page me about critical alerts anyway", default=True)
    wants_follow_ups = BooleanField(
        "Notify me when somebody else acknowledges an alert, when it ends, and when I am assigned",
        default=True,
    )

    @classmethod
    def from_preferences(
        cls, preferences: PagingPreferences, time_zone: str = "UTC"
    ) -> "PagingPreferencesForm":
        """Return the form with the current values."""
        quiet = preferences.quiet_hours
        return cls(
            quiet_from=format_minutes_of_day(quiet.starts) if quiet else "",
            quiet_until=format_minutes_of_day(quiet.ends) if quiet else "",
            time_zone=quiet.time_zone if quiet else time_zone,
            critical_breaks_quiet=quiet is None or quiet.lets_critical_through,
            wants_follow_ups=preferences.wants_follow_ups,
        )

    @property
    def entered_preferences(self) -> ContactPreferencesBody:
        """The entered preferences.

        Raise InvalidError for invalid values.
        """
        quiet = None
        if self.quiet_from.data or self.quiet_until.data:
            quiet = {
                "starts_at": self.quiet_from.data or "-",
                "ends_at": self.quiet_until.data or "-",
                "time_zone": self.time_zone.data,
                "critical_breaks_quiet_hours": self.critical_breaks_quiet.data,
            }
        follow_ups = self.wants_follow_ups.data
        return self.build_entered_body(
            ContactPreferencesBody, quiet_hours=quiet, follow_ups=follow_ups
        )
