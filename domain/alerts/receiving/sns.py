"""Confirms subscriptions to Amazon SNS topics, whose notifications are alerts.

See https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html. A confirmation
request contains the URL of a certificate and the URL that confirms the subscription. Before a
subscription is confirmed, both URLs must belong to Amazon SNS, and the certificate must verify the
signature.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm
from cryptography.x509 import load_pem_x509_certificate

from domain.alerts.parsing.incoming_alert import NoValidItemError, ParsedBody
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.errors import InvalidError
from domain.delivery.outgoing.urls import OutgoingUrl, parse_outgoing_url

#: Header that all requests from Amazon SNS contain, and its values for requests that are not
#: notifications.
TYPE_HEADER = "x-amz-sns-message-type"
CONFIRMATION_TYPE = "SubscriptionConfirmation"
UNSUBSCRIPTION_TYPE = "UnsubscribeConfirmation"

_SNS_HOST = re.compile(r"sns\.[a-z0-9-]{3,30}\.amazonaws\.com(?:\.cn)?")
_HTTPS_PORT = 443
#: Signed members of a confirmation request, in order.
_SIGNED_MEMBERS = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_HASHES_BY_VERSION: Mapping[str, type[HashAlgorithm]] = {"1": SHA1, "2": SHA256}

#: Function that requests a URL and returns the status and the body. It raises
#: UnconfirmedSubscriptionError if the request fails.
HttpGet = Callable[[OutgoingUrl], tuple[int, bytes]]


class UnconfirmedSubscriptionError(NoValidItemError):
    """A subscription cannot be confirmed, and the request contains no alerts.

    The message states the reason.
    """


@dataclass(frozen=True, kw_only=True)
class _ConfirmationRequest:
    """The members of a confirmation request, all of which are strings."""

    members: Mapping[str, str]
    certificate_url: OutgoingUrl
    subscribe_url: OutgoingUrl

    @property
    def signed_text(self) -> bytes:
        """Text that the signature covers."""
        lines = (f"{name}\n{self.members[name]}\n" for name in _SIGNED_MEMBERS)
        return "".join(lines).encode("utf-8", "surrogatepass")


def confirm_subscription(payload: Mapping[str, object], *, get: HttpGet) -> ParsedBody:
    """Confirm a subscription, and return a body that contains only a message about the result.

    Raise UnconfirmedSubscriptionError if the subscription cannot be confirmed.
    """
    asked = _parse_confirmation_request(payload)
    _check_signature(
        asked, _fetch_signing_certificate(get, asked.certificate_url, "the certificate")
    )
    _fetch_signing_certificate(get, asked.subscribe_url, "the confirmation")
    return _build_body_with_message(
        f"The subscription to {replace_unstorable_characters(asked.members['TopicArn'])} was "
        "confirmed."
    )


def build_unsubscription_body(payload: Mapping[str, object]) -> ParsedBody:
    """Return a body that contains only a message about the end of a subscription."""
    return _build_body_with_message(
        f"The subscription to {replace_unstorable_characters(str(payload.get('TopicArn')))[:300]} "
        "has ended."
    )


def _build_body_with_message(sentence: str) -> ParsedBody:
    return ParsedBody(alerts=(), refused=(), truncated_alerts=0, parse_warnings=(sentence,))


def _parse_confirmation_request(payload: Mapping[str, object]) -> _ConfirmationRequest:
    names = (*_SIGNED_MEMBERS, "SigningCertURL", "Signature", "SignatureVersion")
    members = {name: value for name in names if isinstance(value := payload.get(name), str)}
    if missing := [name for name in names if name not in members]:
        message = f"The subscription confirmation has no {', '.join(missing)}."
        raise UnconfirmedSubscriptionError(message)
    if members["Type"] != CONFIRMATION_TYPE:
        raise UnconfirmedSubscriptionError("The type in the body does not match the header.")
    return _ConfirmationRequest(
        members=members,
        certificate_url=_parse_amazon_url(members["SigningCertURL"], "SigningCertURL"),
        subscribe_url=_parse_amazon_url(members["SubscribeURL"], "SubscribeURL"),
    )


def _parse_amazon_url(text: str, name: str) -> OutgoingUrl:
    try:
        url = parse_outgoing_url(text)
    except InvalidError as error:
        raise UnconfirmedSubscriptionError(f"{name}: {error}") from error
    if not url.is_encrypted or url.port != _HTTPS_PORT or not _SNS_HOST.fullmatch(url.host):
        message = f"{name} is not an https URL of Amazon SNS. The subscription was not confirmed."
        raise UnconfirmedSubscriptionError(message)
    return url


def _fetch_signing_certificate(get: HttpGet, url: OutgoingUrl, what: str) -> bytes:
    status, body = get(url)
    if status != 200:  # noqa: PLR2004 - OK
        message = f"Amazon SNS returned status {status} to the request for {what}."
        raise UnconfirmedSubscriptionError(message)
    return body


def _check_signature(asked: _ConfirmationRequest, certificate: bytes) -> None:
    algorithm = _HASHES_BY_VERSION.get(asked.members["SignatureVersion"])
    if algorithm is None:
        message = "The version of the signature is unknown. It must be 1 or 2."
        raise UnconfirmedSubscriptionError(message)
    message = "The signature of the request is wrong. The subscription was not confirmed."
    try:
        signature = b64decode(asked.members["Signature"], validate=True)
        key = load_pem_x509_certificate(certificate).public_key()
    except (Base64Error, ValueError) as error:
        raise UnconfirmedSubscriptionError(message) from error
    if not isinstance(key, RSAPublicKey):
        raise UnconfirmedSubscriptionError(message)
    try:
        key.verify(signature, asked.signed_text, PKCS1v15(), algorithm())
    except InvalidSignature as error:
        raise UnconfirmedSubscriptionError(message) from error
