"""Forms for webhooks of projects."""

from typing import Self

from wtforms import SelectMultipleField, StringField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.webhooks.events import ALL, WebhookEvent
from domain.webhooks.types import Webhook
from forms.alert_conditions import ConditionsForm
from forms.base import SomeBody, without_edges

#: The name, title and description of each event, for the page.
EVENT_CHOICES = tuple(
    {"name": each.value, "title": each.label, "description": each.explanation}
    for each in WebhookEvent
)


class WebhookForm(ConditionsForm):
    """URL, events and conditions of a webhook."""

    url = StringField(
        "URL",
        filters=[without_edges],
        validators=[
            DataRequired("Enter the URL that events are sent to."),
            Length(max=2_000, message="A URL may have at most 2000 characters."),
        ],
    )
    events = SelectMultipleField(
        "Events",
        choices=[(each.value, each.label) for each in WebhookEvent],
        validators=[InputRequired("Choose at least one event.")],
    )

    @classmethod
    def of(cls, webhook: Webhook) -> Self:
        """Return the form with the present values of a webhook."""
        chosen = [*WebhookEvent] if ALL in webhook.events else list(webhook.events)
        return cls(url=webhook.url, events=chosen, **cls.values_of(webhook.details.conditions))

    def webhook(self, body: type[SomeBody]) -> SomeBody:
        """Return what was entered; all events stand for those of later versions as well."""
        chosen = self.events.data or []
        every = set(chosen) == set(WebhookEvent)
        return self.read(body, events=[ALL] if every else chosen, **self.names)
