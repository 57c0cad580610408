"""A ready configuration for Docker's registry."""

from dataclasses import dataclass, field

from domain.registry.tokens import SERVICE

#: Stands for the secret on pages of those who may not see it.
HIDDEN_SECRET = "SECRET OF THE NOTIFICATIONS, WHICH ADMINISTRATORS OF THE INSTANCE SEE"  # noqa: S105
#: Stands for the host where no registry is connected.
EXAMPLE_HOST = "registry.example.org"
#: Where Debian's package has its configuration.
BUNDLE_FILE = "/etc/docker/registry/gatebell.pem"


@dataclass(frozen=True, kw_only=True)
class RegistryConfiguration:
    """What a registry's configuration needs to know of this installation."""

    base_url: str
    notification_secret: str = field(default=HIDDEN_SECRET, repr=False)

    @property
    def bundle_url(self) -> str:
        """Return where the certificates are, which the registry has to trust."""
        return f"{self.base_url}/jwt/certificates"

    @property
    def download_command(self) -> str:
        """Return the command that stores them where the configuration expects them."""
        return f"curl --fail --output {BUNDLE_FILE} {self.bundle_url}"

    @property
    def text(self) -> str:
        """Return the configuration file."""
        return _CONFIGURATION.format(
            base_url=self.base_url,
            bundle_file=BUNDLE_FILE,
            secret=self.notification_secret,
            service=SERVICE,
        )


_CONFIGURATION = """\
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
      # After so many failures the registry pauses for the time of backoff. Deprecated: registries
      # that know maxretries ignore it, older ones such as 2.8 need it.
      threshold: 5
      backoff: 10s
      # How often an event is tried again before it is dropped. Registry 2.8 ignores it and tries
      # until it succeeds.
      maxretries: 10
      ignore:
        actions: [pull]
        mediatypes: [application/octet-stream]
"""
