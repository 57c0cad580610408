"""Forms for webhooks and audit stream destinations."""

from typing import Self

from wtforms import RadioField, SelectMultipleField
from wtforms.validators import DataRequired, InputRequired

from domain.core.grace_period import GracePeriod
from domain.delivery.webhooks.types import ALL_EVENTS, Webhook, WebhookEvent
from forms.alerts import ConditionsForm
from forms.base import Form, SomeBody, TextLineField, limit_length


class DestinationForm(Form):
    """The form for the URL of a destination."""

    url = TextLineField(
        "URL", DataRequired("Enter the URL to which events are sent."), limit_length(2000, "A URL")
    )


class SecretRotationForm(Form):
    """The form that rotates a secret and sets how long the old secret stays in use."""

    overlap = RadioField(
        "How long does the old secret stay in use?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.DAY.key,
        validators=[InputRequired("Choose how long the old secret stays in use.")],
    )


#: Name, title and description of each event, for the page.
EVENT_CHOICES = tuple(
    {"name": each.value, "title": each.label, "description": each.explanation}
    for each in WebhookEvent
)


class WebhookForm(DestinationForm, ConditionsForm):
    """The form for the URL, events and conditions of a webhook."""

    events = SelectMultipleField(
        "Events",
        choices=[(each.value, each.label) for each in WebhookEvent],
        validators=[InputRequired("Choose at least one event.")],
    )

    @classmethod
    def from_webhook(cls, webhook: Webhook) -> Self:
        """Return the form with the current values of a webhook."""
        chosen = [*WebhookEvent] if ALL_EVENTS in webhook.events else list(webhook.events)
        return cls(
            url=webhook.url, events=chosen, **cls.build_field_values(webhook.details.conditions)
        )

    def build_webhook(self, body: type[SomeBody]) -> SomeBody:
        """Return the entered values as a request body for a webhook.

        If all events are selected, the webhook also receives the events that later releases add.
        """
        chosen = self.events.data or []
        every = set(chosen) == set(WebhookEvent)
        return self.build_entered_body(
            body, events=[ALL_EVENTS] if every else chosen, **self.environment_and_service_names
        )
