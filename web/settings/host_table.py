"""Settings of the host: addresses, storage, Git, keys, processes, logs and metrics.

`web/settings/table.py` contains all other settings.
"""

from dataclasses import dataclass
from pathlib import Path

from web.settings import kinds
from web.settings.fields import computed, computed_secret, fixed, live, secret

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """Validated settings of the host."""

    host: str = fixed(
        "127.0.0.1",
        kinds.host(),
        "Address to listen on. `::` stands for all IPv6 and IPv4 addresses.",
    )
    port: int = fixed(8000, kinds.whole_number(1, 65_535), "Port to listen on.")
    base_url: str = computed(
        "http://HOST:PORT",
        kinds.base_url(),
        "Public URL of the service, which is also the issuer of tokens.",
    )
    tls_certificate: Path | None = fixed(  # noqa: RUF009 - makes a field
        None,
        kinds.file(),
        "Certificate of the web server with its chain, in PEM. If it is set, the service uses TLS "
        "on PORT. Renewed files are loaded while the service is running.",
    )
    tls_key: Path | None = fixed(  # noqa: RUF009 - makes a field
        None, kinds.file(), "Private key of TLS_CERTIFICATE, in PEM."
    )
    trusted_proxies: int = fixed(
        0,
        kinds.whole_number(0, 10),
        "Number of trusted reverse proxies that set X-Forwarded-For.",
    )
    trusted_ca_file: Path | None = fixed(  # noqa: RUF009 - makes a field
        None,
        kinds.authorities_file(),
        "Additional certificate authorities to trust for outgoing connections.",
    )
    outgoing_private_addresses: str = fixed(
        "",
        kinds.networks(),
        "Non-public networks that requests to configured URLs can reach, such as the URLs of "
        "webhooks and audit streams.",
    )
    outgoing_contact_hosts: str = fixed(
        "",
        kinds.hosts_with_ports(),
        "Hosts with non-public addresses that contacts and channels can use, each with its port. A "
        "name must match the host in the URL of the contact. An IP address allows all host names "
        "that resolve to it.",
    )
    outgoing_proxy: str = secret(
        "",
        kinds.proxy_url(),
        "HTTP proxy for requests of webhooks, audit streams, identity providers and logout URLs to "
        "public addresses. Hosts in OUTGOING_PRIVATE_ADDRESSES are reached directly.",
    )
    instance_name: str = live(
        "Gatebell", kinds.line_of_text(60), "Name of the installation, shown on every page."
    )

    instance_path: Path = computed(  # noqa: RUF009 - makes a field
        "./instance", kinds.directory(), "Directory for the files of the service."
    )
    database_url: str = computed_secret(
        "sqlite:///gatebell.db",
        kinds.database_url(),
        "Database. The path of a SQLite file can be relative to INSTANCE_PATH.",
    )
    database_pooler: str = fixed(
        "none", kinds.one_of("none", "transaction"), "Pooling mode of a pooler in DATABASE_URL."
    )
    database_connect_timeout_seconds: int = fixed(
        2, kinds.whole_number(1, 60, "seconds"), "Timeout for connecting to Postgres."
    )
    database_statement_timeout_ms: int = fixed(
        15_000, kinds.whole_number(100, 600_000, "milliseconds"), "Timeout for a SQL statement."
    )
    migrate_on_start: bool = fixed(
        default=True,
        kind=kinds.yes_or_no(),
        doc="Migrate the database at startup. If this is off, run `make migrate`.",
    )
    database_pool_size: int = fixed(
        8,
        kinds.whole_number(1, 512),
        "Number of database connections of a web process for pages, and again the same number for "
        "receivers and tokens.",
    )
    sqlite_busy_timeout_ms: int = fixed(
        5_000, kinds.whole_number(0, 60_000, "milliseconds"), "Maximum wait for a lock of SQLite."
    )

    repositories_path: Path = computed(  # noqa: RUF009 - makes a field
        "INSTANCE_PATH/repositories", kinds.directory(), "Directory for Git repositories."
    )
    git_program: str = fixed("git", kinds.line_of_text(1_000), "Name or path of the Git program.")
    git_processes: int = fixed(
        32,
        kinds.whole_number(1, 1_000),
        "Maximum number of concurrent Git transfers of a host. One user can use at most half of "
        "them. Without a valid token, an IP address can use a quarter, and all addresses together "
        "half.",
    )
    git_wait_seconds: int = fixed(
        15,
        kinds.whole_number(0, 30, "seconds"),
        "Maximum wait of a Git transfer above GIT_PROCESSES before it gets the status 503.",
    )
    git_idle_timeout_seconds: int = fixed(
        60,
        kinds.whole_number(15, 3_600, "seconds"),
        "Time without progress after which a Git transfer is canceled.",
    )
    git_transfer_timeout_seconds: int = fixed(
        10_800, kinds.whole_number(10, 604_800, "seconds"), "Maximum duration of a Git transfer."
    )
    push_limit_bytes: int = live(
        5 * 1024 * _MIB,
        kinds.whole_number(1_024, 1_048_576 * _MIB, "bytes"),
        "Maximum size of a push.",
    )
    free_space_for_pushes_bytes: int = live(
        256 * _MIB,
        kinds.whole_number(0, 2**50, "bytes"),
        "Free disk space below which pushes are rejected.",
    )

    secret_key: str = computed_secret(
        "created in INSTANCE_PATH/secret_key; required with Postgres",
        kinds.long_secret(),
        "Key for signing, hashing and encrypting. It must be the same on all hosts that share the "
        "database.",
    )
    secret_key_fallbacks: tuple[str, ...] = secret(
        (), kinds.long_secrets(), "Previous secret keys that can still be used to read data."
    )

    profile: str = fixed(
        "standard",
        kinds.one_of("standard", "small"),
        "Defaults of other settings. `small` is for machines and containers with less than 512 MiB "
        "of memory: WEB_CONCURRENCY=1, DATABASE_POOL_SIZE=4 and PASSWORD_HASH_MEMORY_KIB=19456.",
    )
    web_concurrency: int = fixed(2, kinds.whole_number(1, 256), "Number of web processes.")
    web_connections: int = fixed(
        5_000,
        kinds.whole_number(10, 100_000),
        "Maximum number of client connections of a web process. Further connections wait.",
    )
    keep_alive_seconds: int = fixed(
        65,
        kinds.whole_number(1, 3_600, "seconds"),
        "Timeout for idle client connections. It should exceed the timeout of a proxy.",
    )
    graceful_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "Time for open requests and jobs of the worker to finish when the service stops.",
    )
    shutdown_delay_seconds: int = fixed(
        0,
        kinds.whole_number(0, 300, "seconds"),
        "Time for which the web server still serves requests before it stops. During this time, "
        "/readyz returns 503, so that load balancers stop using the host first.",
    )
    request_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "Time limit for receiving a request, and again for processing it.",
    )

    log_level: str = fixed(
        "INFO",
        kinds.one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        "Lowest level that is logged.",
    )
    log_format: str = fixed(
        "auto",
        kinds.one_of("auto", "json", "text"),
        "Format of log lines. auto is text on a terminal and JSON elsewhere.",
    )
    metrics_token: str = secret(
        "",
        kinds.line_of_text(1_000),
        "Bearer token for /metrics. Without it, only this host and METRICS_NETWORKS have access.",
    )
    metrics_networks: str = fixed(
        "", kinds.networks(), "Networks that have access to /metrics without a token."
    )

    @property
    def uses_sqlite(self) -> bool:
        """Return whether the database is a SQLite file."""
        return self.database_url.startswith("sqlite")
