"""Settings of the host: addresses, storage, Git, keys, processes, logs and metrics.

`web/settings/definitions.py` contains all other settings.
"""

from dataclasses import dataclass
from pathlib import Path

from web.settings import kinds
from web.settings.fields import (
    define_computed_secret,
    define_computed_setting,
    define_fixed_setting,
    define_live_setting,
    define_secret,
)

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """Validated settings of the host."""

    host: str = define_fixed_setting(
        "127.0.0.1",
        kinds.build_host_kind(),
        "Address to listen on. `::` stands for all IPv6 and IPv4 addresses.",
    )
    port: int = define_fixed_setting(
        8000, kinds.build_whole_number_kind(1, 65_535), "Port to listen on."
    )
    base_url: str = define_computed_setting(
        "http://HOST:PORT",
        kinds.build_base_url_kind(),
        "Public URL of the service, which is also the issuer of tokens.",
    )
    tls_certificate: Path | None = define_fixed_setting(  # noqa: RUF009 - makes a field
        None,
        kinds.build_file_kind(),
        "Certificate of the web server with its chain, in PEM. If it is set, the service uses TLS "
        "on PORT. Renewed files are loaded while the service is running.",
    )
    tls_key: Path | None = define_fixed_setting(  # noqa: RUF009 - makes a field
        None, kinds.build_file_kind(), "Private key of TLS_CERTIFICATE, in PEM."
    )
    trusted_proxies: int = define_fixed_setting(
        0,
        kinds.build_whole_number_kind(0, 10),
        "Number of trusted reverse proxies that set X-Forwarded-For.",
    )
    trusted_ca_file: Path | None = define_fixed_setting(  # noqa: RUF009 - makes a field
        None,
        kinds.build_ca_file_kind(),
        "Additional certificate authorities to trust for outgoing connections.",
    )
    outgoing_private_addresses: str = define_fixed_setting(
        "",
        kinds.build_networks_kind(),
        "Non-public networks that requests to configured URLs can reach, such as the URLs of "
        "webhooks and audit streams.",
    )
    outgoing_contact_hosts: str = define_fixed_setting(
        "",
        kinds.build_hosts_with_ports_kind(),
        "Hosts with non-public addresses that contacts and channels can use, each with its port. A "
        "name must match the host in the URL of the contact. An IP address allows all host names "
        "that resolve to it.",
    )
    outgoing_proxy: str = define_secret(
        "",
        kinds.build_proxy_url_kind(),
        "HTTP proxy for requests of webhooks, audit streams, identity providers, logout URLs and "
        "notifications of devices to public addresses. Allowed non-public addresses are reached "
        "directly.",
    )
    instance_name: str = define_live_setting(
        "Gatebell", kinds.build_line_kind(60), "Name of the installation, shown on every page."
    )

    instance_path: Path = define_computed_setting(  # noqa: RUF009 - makes a field
        "./instance", kinds.build_directory_kind(), "Directory for the files of the service."
    )
    database_url: str = define_computed_secret(
        "sqlite:///gatebell.db",
        kinds.build_database_url_kind(),
        "Database. The path of a SQLite file can be relative to INSTANCE_PATH.",
    )
    database_pooler: str = define_fixed_setting(
        "none",
        kinds.build_choice_kind("none", "transaction"),
        "Pooling mode of a pooler in DATABASE_URL.",
    )
    database_connect_timeout_seconds: int = define_fixed_setting(
        2, kinds.build_whole_number_kind(1, 60, "seconds"), "Timeout for connecting to Postgres."
    )
    database_statement_timeout_ms: int = define_fixed_setting(
        15_000,
        kinds.build_whole_number_kind(100, 600_000, "milliseconds"),
        "Timeout for a SQL statement.",
    )
    migrate_on_start: bool = define_fixed_setting(
        default=True,
        kind=kinds.build_yes_or_no_kind(),
        doc="Migrate the database at startup. If this is off, run `make migrate`.",
    )
    database_pool_size: int = define_fixed_setting(
        8,
        kinds.build_whole_number_kind(1, 512),
        "Number of database connections of a web process for pages, and again the same number for "
        "receivers and tokens.",
    )
    sqlite_busy_timeout_ms: int = define_fixed_setting(
        5_000,
        kinds.build_whole_number_kind(0, 60_000, "milliseconds"),
        "Maximum wait for a lock of SQLite.",
    )

    repositories_path: Path = define_computed_setting(  # noqa: RUF009 - makes a field
        "INSTANCE_PATH/repositories",
        kinds.build_directory_kind(),
        "Directory for Git repositories.",
    )
    git_program: str = define_fixed_setting(
        "git", kinds.build_line_kind(1_000), "Name or path of the Git program."
    )
    git_processes: int = define_fixed_setting(
        32,
        kinds.build_whole_number_kind(1, 1_000),
        "Maximum number of concurrent Git transfers of a host. One user can use at most half of "
        "them. Without a valid token, an IP address can use a quarter, and all addresses together "
        "half.",
    )
    git_wait_seconds: int = define_fixed_setting(
        15,
        kinds.build_whole_number_kind(0, 30, "seconds"),
        "Maximum wait of a Git transfer above GIT_PROCESSES before it gets the status 503.",
    )
    git_idle_timeout_seconds: int = define_fixed_setting(
        60,
        kinds.build_whole_number_kind(15, 3_600, "seconds"),
        "Time without progress after which a Git transfer is canceled.",
    )
    git_transfer_timeout_seconds: int = define_fixed_setting(
        10_800,
        kinds.build_whole_number_kind(10, 604_800, "seconds"),
        "Maximum duration of a Git transfer.",
    )
    push_limit_bytes: int = define_live_setting(
        5 * 1024 * _MIB,
        kinds.build_whole_number_kind(1_024, 1_048_576 * _MIB, "bytes"),
        "Maximum size of a push.",
    )
    free_space_for_pushes_bytes: int = define_live_setting(
        256 * _MIB,
        kinds.build_whole_number_kind(0, 2**50, "bytes"),
        "Free disk space below which pushes are rejected.",
    )

    secret_key: str = define_computed_secret(
        "created in INSTANCE_PATH/secret_key; required with Postgres",
        kinds.build_long_secret_kind(),
        "Key for signing, hashing and encrypting. It must be the same on all hosts that share the "
        "database.",
    )
    secret_key_fallbacks: tuple[str, ...] = define_secret(
        (),
        kinds.build_long_secret_list_kind(),
        "Previous secret keys that can still be used to read data.",
    )

    profile: str = define_fixed_setting(
        "standard",
        kinds.build_choice_kind("standard", "small"),
        "Defaults of other settings. `small` is for machines and containers with less than 512 MiB "
        "of memory: WEB_CONCURRENCY=1, DATABASE_POOL_SIZE=4 and PASSWORD_HASH_MEMORY_KIB=19456.",
    )
    web_concurrency: int = define_fixed_setting(
        2, kinds.build_whole_number_kind(1, 256), "Number of web processes."
    )
    web_connections: int = define_fixed_setting(
        5_000,
        kinds.build_whole_number_kind(10, 100_000),
        "Maximum number of client connections of a web process. Further connections wait.",
    )
    keep_alive_seconds: int = define_fixed_setting(
        65,
        kinds.build_whole_number_kind(1, 3_600, "seconds"),
        "Timeout for idle client connections. It should exceed the timeout of a proxy.",
    )
    graceful_timeout_seconds: int = define_fixed_setting(
        30,
        kinds.build_whole_number_kind(1, 600, "seconds"),
        "Time for open requests and jobs of the worker to finish when the service stops.",
    )
    shutdown_delay_seconds: int = define_fixed_setting(
        0,
        kinds.build_whole_number_kind(0, 300, "seconds"),
        "Time for which the web server still serves requests before it stops. During this time, "
        "/readyz returns 503, so that load balancers stop using the host first.",
    )
    request_timeout_seconds: int = define_fixed_setting(
        30,
        kinds.build_whole_number_kind(1, 600, "seconds"),
        "Time limit for receiving a request, and again for processing it.",
    )

    log_level: str = define_fixed_setting(
        "INFO",
        kinds.build_choice_kind("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        "Lowest level that is logged.",
    )
    log_format: str = define_fixed_setting(
        "auto",
        kinds.build_choice_kind("auto", "json", "text"),
        "Format of log lines. auto is text on a terminal and JSON elsewhere.",
    )
    metrics_token: str = define_secret(
        "",
        kinds.build_line_kind(1_000),
        "Bearer token for /metrics. Without it, only this host and METRICS_NETWORKS have access.",
    )
    metrics_networks: str = define_fixed_setting(
        "", kinds.build_networks_kind(), "Networks that have access to /metrics without a token."
    )

    @property
    def uses_sqlite(self) -> bool:
        """True if the database is a SQLite file."""
        return self.database_url.startswith("sqlite")
