"""Confirmation of subscriptions to Amazon SNS, which only follows URLs of Amazon."""

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from domain.alerts.receiving.sns import UnconfirmedSubscriptionError, confirm_subscription
from domain.delivery.outgoing.urls import OutgoingUrl

AMAZON = "https://sns.eu-central-1.amazonaws.com"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
CERTIFICATE = (
    x509.CertificateBuilder()
    .subject_name(NAME)
    .issuer_name(NAME)
    .public_key(KEY.public_key())
    .serial_number(1)
    .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    .not_valid_after(datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=9_000))
    .sign(KEY, SHA256())
    .public_bytes(Encoding.PEM)
)


def request_to_confirm(version: str = "2", **changes: str) -> dict[str, object]:
    """Return a request with a signature of SNS; `changes` are applied after signing."""
    members = {
        "Message": "You have chosen to subscribe to the topic.",
        "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
        "SubscribeURL": f"{AMAZON}/?Action=ConfirmSubscription&Token=2336412f37",
        "Timestamp": "2026-11-21T08:31:50.012Z",
        "Token": "2336412f37",
        "TopicArn": "arn:aws:sns:eu-central-1:111122223333:alarms",
        "Type": "SubscriptionConfirmation",
    }
    text = "".join(f"{name}\n{members[name]}\n" for name in sorted(members)).encode()
    algorithm = SHA1() if version == "1" else SHA256()  # noqa: S303 - what SNS signs with
    signature = KEY.sign(text, PKCS1v15(), algorithm)
    signed = {
        "SignatureVersion": version,
        "Signature": b64encode(signature).decode(),
        "SigningCertURL": f"{AMAZON}/SimpleNotificationService-0123.pem",
    }
    return {**members, **signed, **changes}


class Amazon:
    """Simulated servers of Amazon."""

    def __init__(self, status: int = 200) -> None:
        self.asked: list[str] = []
        self.status = status

    def get(self, url: OutgoingUrl) -> tuple[int, bytes]:
        self.asked.append(f"{url.scheme}://{url.authority}{url.target}")
        return (200, CERTIFICATE) if url.target.endswith(".pem") else (self.status, b"<ok/>")


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_signed_request_of_amazon_is_confirmed(version: str) -> None:
    amazon = Amazon()
    parsed = confirm_subscription(request_to_confirm(version), get=amazon.get)
    assert amazon.asked == [
        f"{AMAZON}/SimpleNotificationService-0123.pem",
        f"{AMAZON}/?Action=ConfirmSubscription&Token=2336412f37",
    ]
    assert parsed.alerts == ()
    assert parsed.parse_warnings == (
        "The subscription to arn:aws:sns:eu-central-1:111122223333:alarms was confirmed.",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"SubscribeURL": "https://sns.eu-central-1.amazonaws.com.evil.example/"},
        {"SubscribeURL": "http://sns.eu-central-1.amazonaws.com/"},
        {"SubscribeURL": "https://sns.eu-central-1.amazonaws.com:8443/"},
        {"SubscribeURL": "https://x@sns.eu-central-1.amazonaws.com/"},
        {"SubscribeURL": "https://169.254.169.254/latest/meta-data/"},
        {"SigningCertURL": "https://evil.s3.amazonaws.com/x.pem"},
        {"SigningCertURL": "https://snsxeu-central-1.amazonaws.com/x.pem"},
        {"SignatureVersion": "3"},
        {"Type": "Notification"},
    ],
)
def test_urls_outside_of_amazon_are_not_requested(changes: Mapping[str, str]) -> None:
    amazon = Amazon()
    with pytest.raises(UnconfirmedSubscriptionError):
        confirm_subscription(request_to_confirm(**changes), get=amazon.get)
    assert [url for url in amazon.asked if "Confirm" in url] == []
    if "SignatureVersion" not in changes:
        assert amazon.asked == []


@pytest.mark.parametrize(
    "changes", [{"TopicArn": "arn:aws:sns:x"}, {"Signature": "AAAA"}, {"Signature": "?"}]
)
def test_a_wrong_signature_is_not_confirmed(changes: Mapping[str, str]) -> None:
    amazon = Amazon()
    with pytest.raises(UnconfirmedSubscriptionError, match="signature"):
        confirm_subscription(request_to_confirm(**changes), get=amazon.get)
    assert len(amazon.asked) == 1


def test_errors_name_missing_fields_and_rejections_of_amazon() -> None:
    with pytest.raises(UnconfirmedSubscriptionError, match="has no Message, MessageId"):
        confirm_subscription({"Type": "SubscriptionConfirmation"}, get=Amazon().get)
    with pytest.raises(UnconfirmedSubscriptionError, match="returned status 403"):
        confirm_subscription(request_to_confirm(), get=Amazon(403).get)
