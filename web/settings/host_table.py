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

    host: str = fixed("127.0.0.1", kinds.host(), "Address to listen on; `::` for IPv6 and IPv4.")
    port: int = fixed(8000, kinds.whole_number(1, 65_535), "Port to listen on.")
    base_url: str = computed(
        "http://HOST:PORT",
        kinds.base_url(),
        "Public URL of the service; also the issuer.",
    )
    tls_certificate: Path | None = fixed(  # noqa: RUF009 - makes a field
        None,
        kinds.file(),
        "Certificate of the web server with its chain, in PEM. With it, the service speaks TLS on "
        "PORT. A renewed file is loaded while the service is running.",
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
        "Certificate authorities to trust in addition to those of the system, for outgoing "
        "connections.",
    )
    outgoing_private_addresses: str = fixed(
        "",
        kinds.networks(),
        "Non-public networks that requests to configured URLs may reach, such as the URLs of "
        "webhooks and audit streams.",
    )
    outgoing_contact_hosts: str = fixed(
        "",
        kinds.hosts_with_ports(),
        "Hosts on non-public addresses that contacts and channels may use, each with its port. A "
        "name counts as it stands in the URL of the contact, an IP address by whatever name.",
    )
    outgoing_proxy: str = secret(
        "",
        kinds.proxy_url(),
        "HTTP proxy for requests to public addresses: of webhooks, audit streams, identity "
        "providers and logout URLs. Hosts in OUTGOING_PRIVATE_ADDRESSES are reached directly.",
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
        "The database; a relative path of a SQLite file is relative to INSTANCE_PATH.",
    )
    database_pooler: str = fixed(
        "none", kinds.one_of("none", "transaction"), "Pooling mode of a pooler in DATABASE_URL."
    )
    database_connect_timeout_seconds: int = fixed(
        2, kinds.whole_number(1, 60, "seconds"), "Timeout for connections to Postgres."
    )
    database_statement_timeout_ms: int = fixed(
        15_000, kinds.whole_number(100, 600_000, "milliseconds"), "Timeout for a statement."
    )
    migrate_on_start: bool = fixed(
        default=True,
        kind=kinds.yes_or_no(),
        doc="Migrate the database at startup; otherwise run `make migrate`.",
    )
    database_pool_size: int = fixed(
        8,
        kinds.whole_number(1, 512),
        "Database connections of a web process for pages, and the same number again for "
        "receivers and tokens.",
    )
    sqlite_busy_timeout_ms: int = fixed(
        5_000, kinds.whole_number(0, 60_000, "milliseconds"), "Longest wait for a lock of SQLite."
    )

    repositories_path: Path = computed(  # noqa: RUF009 - makes a field
        "INSTANCE_PATH/repositories", kinds.directory(), "Directory for Git repositories."
    )
    git_program: str = fixed("git", kinds.line_of_text(1_000), "The Git program: a name or a path.")
    git_processes: int = fixed(
        32,
        kinds.whole_number(1, 1_000),
        "Concurrent Git transfers of a host. One person can use half of them; without a valid "
        "token, an IP address can use a quarter, and all of these together half.",
    )
    git_wait_seconds: int = fixed(
        15,
        kinds.whole_number(0, 30, "seconds"),
        "How long a Git transfer above GIT_PROCESSES waits before it is answered 503.",
    )
    git_idle_timeout_seconds: int = fixed(
        60,
        kinds.whole_number(15, 3_600, "seconds"),
        "A Git transfer without progress for so long is ended.",
    )
    git_transfer_timeout_seconds: int = fixed(
        10_800, kinds.whole_number(10, 604_800, "seconds"), "Longest duration of a Git transfer."
    )
    push_limit_bytes: int = live(
        5 * 1024 * _MIB,
        kinds.whole_number(1_024, 1_048_576 * _MIB, "bytes"),
        "Maximum size of a push.",
    )
    free_space_for_pushes_bytes: int = live(
        256 * _MIB,
        kinds.whole_number(0, 2**50, "bytes"),
        "Free disk space below which pushes are refused.",
    )

    secret_key: str = computed_secret(
        "created in INSTANCE_PATH/secret_key; required with Postgres",
        kinds.long_secret(),
        "Key for signing, hashing and encrypting; has to be the same on all hosts that share the "
        "database.",
    )
    secret_key_fallbacks: tuple[str, ...] = secret(
        (), kinds.long_secrets(), "Earlier secret keys that can still be used to read data."
    )

    profile: str = fixed(
        "standard",
        kinds.one_of("standard", "small"),
        "Defaults of other settings. `small` is for machines and containers with less than 512 MiB "
        "of memory: WEB_CONCURRENCY=1, DATABASE_POOL_SIZE=4, PASSWORD_HASH_MEMORY_KIB=19456.",
    )
    web_concurrency: int = fixed(2, kinds.whole_number(1, 256), "Number of web processes.")
    web_connections: int = fixed(
        5_000,
        kinds.whole_number(10, 100_000),
        "Concurrent client connections of a web process; further ones wait.",
    )
    keep_alive_seconds: int = fixed(
        65,
        kinds.whole_number(1, 3_600, "seconds"),
        "Timeout for idle client connections; should be longer than that of a proxy in front.",
    )
    graceful_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "Time for open requests and the work of the worker to finish when the service stops.",
    )
    shutdown_delay_seconds: int = fixed(
        0,
        kinds.whole_number(0, 300, "seconds"),
        "How long the web server continues to serve after it is told to stop. /readyz answers 503 "
        "in this time, so that a load balancer that checks it stops using the host first.",
    )
    request_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "Time to receive a request, and the same time again to process it.",
    )

    log_level: str = fixed(
        "INFO",
        kinds.one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        "Lowest level that is logged.",
    )
    log_format: str = fixed(
        "auto",
        kinds.one_of("auto", "json", "text"),
        "Format of log lines; auto is text on a terminal and JSON elsewhere.",
    )
    metrics_token: str = secret(
        "",
        kinds.line_of_text(1_000),
        "Bearer token for /metrics. Without one, only this host and METRICS_NETWORKS have access.",
    )
    metrics_networks: str = fixed(
        "", kinds.networks(), "Networks that have access to /metrics without a token."
    )

    @property
    def uses_sqlite(self) -> bool:
        """Return whether the database is a SQLite file."""
        return self.database_url.startswith("sqlite")
