"""The contact type for browsers, which show pages as notifications."""

from domain.core.errors import InvalidError
from domain.paging.notifications.contact_types.base import (
    ContactAddress,
    ContactMessage,
    ContactTransports,
    ContactType,
    SendProblem,
    UrlParser,
)
from domain.paging.notifications.push_subscriptions import (
    PushSubscription,
    parse_push_subscription,
)


class DeviceContactType(ContactType):
    """Contact type for browsers that are subscribed to push messages (RFC 8030)."""

    name = "device"
    label, plural = "This device", "Devices"
    address_words = "a push subscription"
    example = ""
    help = "Notifications in a browser or in the installed app."
    is_entered = False

    def validate_address(self, text: str, *, read_url: UrlParser) -> ContactAddress:
        """Validate the JSON of a push subscription, and return it as a contact address.

        Raise InvalidError if the subscription is invalid.
        """
        del read_url
        return build_device_address(parse_push_subscription(text))

    def send_message(
        self, delivery: ContactMessage, transports: ContactTransports
    ) -> SendProblem | None:
        """Send a notification to a browser. Return the problem, or None on success."""
        try:
            subscription = parse_push_subscription(delivery.address)
        except InvalidError as error:
            return SendProblem(str(error), is_final=True, has_ended=True)
        return transports.send_push(subscription, delivery.content, delivery.attempt_id)


DEVICE = DeviceContactType()


def build_device_address(subscription: PushSubscription) -> ContactAddress:
    """Return the contact address for a push subscription."""
    url = subscription.url
    return ContactAddress(
        type=DEVICE, clear=subscription.serialize(), shown=url.host, lane=url.authority
    )
