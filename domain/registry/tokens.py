"""Tokens for Docker's registry, and a complete configuration file for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from joserfc import jwt

from domain.core.clock import format_api_time
from domain.core.randomness import generate_random_hex
from domain.registry.signing_keys import SIGNING_ALGORITHM, TokenSigner

#: Value of `service` in the registry's configuration, and audience of its tokens.
REGISTRY_SERVICE = "container_registry"
#: Placeholder for the secret on pages shown to users who may not see it.
SECRET_PLACEHOLDER = "NOTIFICATION SECRET, SHOWN TO ADMINISTRATORS ONLY"  # noqa: S105
#: Placeholder for the host if no registry is connected.
HOST_PLACEHOLDER = "registry.example.org"
#: Path of the certificates in the configuration directory of the Debian package.
CERTIFICATE_BUNDLE_FILE = "/etc/docker/registry/gatebell.pem"


@dataclass(frozen=True, kw_only=True)
class TokenPolicy:
    """Properties shared by all registry tokens."""

    #: Issuer of the tokens, which is BASE_URL, as in the registry's configuration.
    issuer: str
    lifetime: timedelta


@dataclass(frozen=True, kw_only=True)
class RegistryToken:
    """A signed token, with its lifetime in seconds and the time at which it was issued."""

    clear: str = field(repr=False)
    expires_in: int
    issued_at: datetime

    def convert_to_json_value(self) -> dict[str, str | int]:
        """Return the token response that Docker's specification defines.

        The response contains the token twice, as `token` and as `access_token`.
        """
        return {
            "token": self.clear,
            "access_token": self.clear,
            "expires_in": self.expires_in,
            # The format is RFC 3339, as clients of the registry expect.
            "issued_at": format_api_time(self.issued_at),
        }


def sign_token(
    access: Iterable[Mapping[str, object]],
    *,
    subject: str,
    signer: TokenSigner,
    policy: TokenPolicy,
    now: datetime,
) -> RegistryToken:
    """Return a signed token with the given `access` claim.

    `subject` is a username, or an empty string for an anonymous user.
    """
    lifetime = int(policy.lifetime.total_seconds())
    issued = int(now.timestamp())
    claims: dict[str, object] = {
        "iss": policy.issuer,
        "sub": subject,
        "aud": REGISTRY_SERVICE,
        "exp": issued + lifetime,
        "nbf": issued - 5,
        "iat": issued,
        "jti": generate_random_hex(16),
        "access": [dict(each) for each in access],
    }
    header = {"typ": "JWT", "alg": SIGNING_ALGORITHM, "kid": signer.kid, "x5c": list(signer.x5c)}
    return RegistryToken(
        clear=jwt.encode(header, claims, signer.key), expires_in=lifetime, issued_at=now
    )


@dataclass(frozen=True, kw_only=True)
class RegistryConfiguration:
    """Settings of this installation that a registry's configuration contains."""

    base_url: str
    notification_secret: str = field(default=SECRET_PLACEHOLDER, repr=False)

    @property
    def bundle_url(self) -> str:
        """The URL of the certificates that the registry has to trust."""
        return f"{self.base_url}/jwt/certificates"

    @property
    def download_command(self) -> str:
        """The command that stores the certificates at the path in the configuration."""
        return f"curl --fail --output {CERTIFICATE_BUNDLE_FILE} {self.bundle_url}"

    @property
    def file_content(self) -> str:
        """The content of the registry's configuration file."""
        return _CONFIGURATION_TEMPLATE.format(
            base_url=self.base_url,
            bundle_file=CERTIFICATE_BUNDLE_FILE,
            secret=self.notification_secret,
            service=REGISTRY_SERVICE,
        )


_CONFIGURATION_TEMPLATE = """\
version: 0.1
storage:
  filesystem:
    rootdirectory: /var/lib/docker-registry
  delete:
    enabled: true
http:
  addr: ":5000"
auth:
  token:
    realm: {base_url}/jwt/auth
    service: {service}
    issuer: {base_url}
    rootcertbundle: {bundle_file}
notifications:
  events:
    # For the sizes of images.
    includereferences: true
  endpoints:
    - name: gatebell
      url: {base_url}/api/v4/container_registry_event/events
      headers:
        Authorization: ["Bearer {secret}"]
      timeout: 5s
      # Number of failures after which the registry pauses for the backoff time. Deprecated:
      # registries that support maxretries ignore it, older ones such as 2.8 need it.
      threshold: 5
      backoff: 10s
      # Number of retries before an event is dropped. Registry 2.8 ignores it, and retries until
      # the event is delivered.
      maxretries: 10
      ignore:
        actions: [pull]
        mediatypes: [application/octet-stream]
"""
