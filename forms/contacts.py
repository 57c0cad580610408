"""Forms for users' contacts, notification channels, notification rules and paging preferences."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar, cast

from wtforms import BooleanField, HiddenField, IntegerField, SelectField, StringField
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange, ValidationError
from wtforms.widgets import PasswordInput

from domain.paging.contacts.rule_types import (
    ALERT_SELECTION_WORDS,
    MAX_RULE_DELAY_MINUTES,
    ContactRule,
    NewContactRule,
)
from domain.paging.contacts.services.base import MessagingService, ServiceField
from domain.paging.contacts.types import ContactBody, ContactChange, ContactPreferencesBody
from domain.paging.notifications.contacts import Contact
from domain.paging.notifications.recipients import PagingPreferences, format_minutes_of_day
from domain.paging.on_call.rotation_syntax import format_restriction, parse_restriction
from forms.base import (
    Form,
    TextLineField,
    TimeZoneField,
    convert_domain_errors,
    limit_length,
)

SomeRule = TypeVar("SomeRule", bound=NewContactRule)


class ContactForm(Form):
    """The form for a contact or channel. `build_contact_form` adds the fields for the service."""

    service: ClassVar[MessagingService]
    #: Stored values of an existing contact, including secrets. Empty for a new contact.
    stored: ClassVar[Mapping[str, str]]
    label: TextLineField

    @property
    def entered_contact(self) -> ContactBody:
        """The entered values as the request body for a new contact.

        Raise InvalidError for invalid values.
        """
        address = self.service.build_url(self._entered_values)
        return self.build_entered_body(
            ContactBody, type=self.service.type.name, address=address, label=self._entered_label
        )

    @property
    def entered_change(self) -> ContactChange:
        """The entered changes to a contact. The address is kept if no value has changed.

        Raise InvalidError for invalid values.
        """
        values = self._entered_values
        # The address built from unchanged values may differ in form from the stored address.
        address = None if values == self.stored else self.service.build_url(values)
        return ContactChange(address=address, label=self._entered_label)

    @property
    def _entered_values(self) -> Mapping[str, str]:
        """The entered values, with the stored values in place of empty secrets."""
        entered = {each.name: self[each.name].data or "" for each in self.service.fields}
        return self.service.fill_in_stored_secrets(entered, self.stored) if self.stored else entered

    @property
    def _entered_label(self) -> str:
        """The entered label. The default is the name of the service."""
        return self.label.data or (self.service.name if self.service.schemes else "")


def build_contact_form(
    service: MessagingService, stored: Mapping[str, str], **given: Any
) -> ContactForm:
    """Return the form for a contact of a service.

    `stored` is empty for a new contact.
    """
    members = {
        "service": service,
        "stored": stored,
        # Errors in the complete address are shown at the first field.
        "fields_of": {"address": service.fields[0].name},
        **{each.name: _build_field(each, stored.get(each.name, "")) for each in service.fields},
        "label": TextLineField("Label", limit_length(100, "A label")),
    }
    kind = cast("type[ContactForm]", type("ServiceContactForm", (ContactForm,), members))
    return kind(**given)


def _build_field(service_field: ServiceField, stored: str) -> TextLineField:
    def check_value(_form: Form, field: TextLineField) -> None:
        if field.data:
            with convert_domain_errors():
                service_field.parse_value(field.data)

    is_kept = service_field.is_secret and stored
    validators: list[Any] = [limit_length(1000, "A value"), check_value]
    if not service_field.is_optional and not is_kept:
        validators.insert(0, DataRequired(f"Enter {service_field.noun}."))
    # Secrets are masked, except for whole URLs. Entered secrets stay in the form if another field
    # is invalid.
    is_masked = service_field.is_secret and "://" not in service_field.example
    masked = {"widget": PasswordInput(hide_value=False)} if is_masked else {}
    return TextLineField(
        service_field.label,
        *validators,
        default="" if service_field.is_secret else stored or service_field.default,
        **masked,
    )


class PushSubscriptionForm(Form):
    """The form that a browser sends after it has subscribed to notifications."""

    subscription = HiddenField(validators=[DataRequired("The browser sent no subscription.")])
    label = HiddenField(validators=[limit_length(100, "A label")])


class ContactCodeForm(Form):
    """The form for the code that was sent to a contact."""

    code = TextLineField(
        "Code",
        DataRequired("Enter the code that was sent."),
        Length(max=20, message="The code has six digits."),
    )


class NotificationRuleForm(Form):
    """The form for the alerts, contact, delay and time of a notification rule."""

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
    def build_with_contacts(
        cls, contacts: Iterable[Contact], **given: Any
    ) -> "NotificationRuleForm":
        """Return the form for a rule that uses one of the given contacts."""
        form = cls(**given)
        form.contact_id.choices = [
            (each.id, each.label)
            for each in contacts
            if each.confirmed_at and not each.is_account_email
        ]
        return form

    @classmethod
    def from_rule(cls, rule: ContactRule, contacts: Iterable[Contact]) -> "NotificationRuleForm":
        """Return the form with the current values of a rule."""
        only = format_restriction(rule.only.restriction) if rule.only else ""
        return cls.build_with_contacts(contacts, **{**dict(rule), "only": only})

    def validate_only(self, field: StringField) -> None:
        """Check that the text describes a time.

        Raise ValidationError for any other text.
        """
        text = field.data or ""
        try:
            if text:
                parse_restriction(text)
        except ValueError as error:
            raise ValidationError(f"“{text[:50]}” {error}.") from error

    def build_rule(self, kind: type[SomeRule]) -> SomeRule:
        """Return the entered values as a notification rule of the given type.

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
        """Return the form with a user's current preferences."""
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
        """The entered quiet hours and follow-up messages as a request body.

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
