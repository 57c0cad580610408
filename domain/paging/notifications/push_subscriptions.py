"""Push subscriptions of browsers, in the JSON format of the Push API."""

import base64
import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

from domain.core.errors import InvalidError
from domain.delivery.outgoing.urls import OutgoingUrl, parse_outgoing_url

_FIELD = "subscription"
_AUTH_BYTES = 16
_INVALID_MESSAGE = "The browser's subscription is invalid. Turn on notifications again."


@dataclass(frozen=True, kw_only=True)
class PushSubscription:
    """A browser's push subscription: its endpoint at the push service, and its keys (RFC 8291)."""

    url: OutgoingUrl = field(repr=False)
    endpoint: str = field(repr=False)
    #: Public key of the browser: an uncompressed point on the P-256 curve, 65 bytes.
    p256dh: bytes = field(repr=False)
    #: Authentication secret, 16 bytes.
    auth: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 digest of the endpoint in hexadecimal.

        Browsers compare this digest with the digest of their own endpoint.
        """
        return sha256(self.endpoint.encode()).hexdigest()

    def serialize(self) -> str:
        """Return the subscription as JSON with sorted keys."""
        keys = {"auth": encode_base64url(self.auth), "p256dh": encode_base64url(self.p256dh)}
        return json.dumps({"endpoint": self.endpoint, "keys": keys}, sort_keys=True)


def parse_push_subscription(text: str) -> PushSubscription:
    """Parse the JSON of a subscription.

    Raise InvalidError for the `subscription` field if the subscription is invalid, or if its
    endpoint does not use HTTPS.
    """
    try:
        parsed = json.loads(text)
        endpoint, keys = parsed["endpoint"], parsed["keys"]
        p256dh, auth = _decode_base64url(keys["p256dh"]), _decode_base64url(keys["auth"])
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), p256dh)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidError(_INVALID_MESSAGE, field=_FIELD) from error
    if not isinstance(endpoint, str) or len(auth) != _AUTH_BYTES:
        raise InvalidError(_INVALID_MESSAGE, field=_FIELD)
    url = parse_outgoing_url(endpoint, field=_FIELD)
    if not url.is_encrypted:
        raise InvalidError("The URL of the push service must begin with https://.", field=_FIELD)
    return PushSubscription(url=url, endpoint=endpoint, p256dh=p256dh, auth=auth)


def encode_base64url(raw: bytes) -> str:
    """Encode bytes as base64url without padding (RFC 7515 section 2)."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode_base64url(text: Any) -> bytes:
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
