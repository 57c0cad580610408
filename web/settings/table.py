"""All settings: name, kind, default and description.

The environment variable of a setting is its name in upper case.
"""

from dataclasses import dataclass
from pathlib import Path

from web.settings import kinds
from web.settings.fields import computed, computed_secret, fixed, live, secret

_MIB = 1024 * 1024
_DAY = 86_400
_YEAR = 365 * _DAY


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The validated settings of an installation."""

    host: str = fixed("127.0.0.1", kinds.host(), "Address to listen on.")
    port: int = fixed(8000, kinds.whole_number(1, 65_535), "Port to listen on.")
    base_url: str = computed(
        "http://HOST:PORT",
        kinds.base_url(),
        "Address under which people and clients reach the service; also the issuer.",
    )
    trusted_proxies: int = fixed(
        0,
        kinds.whole_number(0, 10),
        "How many reverse proxies in front may tell the client's address by X-Forwarded-For.",
    )
    instance_name: str = live(
        "Gatebell", kinds.line_of_text(60), "Name of the installation, shown on every page."
    )

    instance_path: Path = computed(  # noqa: RUF009 - makes a field
        "./instance", kinds.directory(), "Directory for the files that the service keeps."
    )
    database_url: str = computed_secret(
        "sqlite:///gatebell.db",
        kinds.database_url(),
        "The database; a relative SQLite file lies in INSTANCE_PATH.",
    )
    database_connect_timeout_seconds: int = fixed(
        2, kinds.whole_number(1, 60, "seconds"), "How long to try to reach Postgres."
    )
    database_statement_timeout_ms: int = fixed(
        15_000,
        kinds.whole_number(100, 600_000, "milliseconds"),
        "How long the database may work on one statement.",
    )
    migrate_on_start: bool = fixed(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Migrate the database when the service starts; when off, `make migrate` has to.",
    )
    database_pool_size: int = fixed(
        8,
        kinds.whole_number(1, 512),
        "Connections to the database that a web process opens for pages, and as many again for "
        "receivers and tokens.",
    )
    sqlite_busy_timeout_ms: int = fixed(
        5_000,
        kinds.whole_number(0, 60_000, "milliseconds"),
        "How long to wait for a lock of SQLite.",
    )

    secret_key: str = computed_secret(
        "made once in INSTANCE_PATH/secret_key; with Postgres it has to be given",
        kinds.long_secret(),
        "Signs, hashes and encrypts; the same on every machine that shares the database.",
    )
    secret_key_fallbacks: tuple[str, ...] = secret(
        (), kinds.long_secrets(), "Earlier secret keys that are still good for reading."
    )

    web_concurrency: int = fixed(2, kinds.whole_number(1, 256), "Web processes.")
    web_connections: int = fixed(
        5_000,
        kinds.whole_number(10, 100_000),
        "Connections of clients that a web process holds at the same time; more wait.",
    )
    worker_threads: int = fixed(
        2, kinds.whole_number(1, 64), "Threads of the process for background work."
    )
    keep_alive_seconds: int = fixed(
        65,
        kinds.whole_number(1, 3_600, "seconds"),
        "How long an idle connection stays open; more than the proxy in front waits.",
    )
    graceful_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "How long requests in flight may take to finish when the service stops.",
    )
    request_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "How long a request may take to come, and as long again to be worked on.",
    )

    log_level: str = fixed(
        "INFO",
        kinds.one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        "The least important events that are logged.",
    )
    log_format: str = fixed("json", kinds.one_of("json", "text"), "How log lines look.")
    metrics_token: str = secret(
        "",
        kinds.line_of_text(1_000),
        "When set, /metrics wants it as a Bearer token; when not, only this machine and "
        "METRICS_NETWORKS may read it.",
    )
    metrics_networks: str = fixed(
        "", kinds.networks(), "Networks that may read /metrics without a token."
    )

    session_lifetime_seconds: int = fixed(
        14 * _DAY,
        kinds.whole_number(60, _YEAR, "seconds"),
        "How long a person stays signed in.",
    )
    administrator_proof_seconds: int = fixed(
        900,
        kinds.whole_number(60, _DAY, "seconds"),
        "How long after signing in an administrator may reset passwords, lock accounts and the "
        "like; later they sign in again first.",
    )
    password_min_length: int = live(
        12, kinds.whole_number(8, 128, "characters"), "The shortest password that may be chosen."
    )
    password_hash_memory_kib: int = fixed(
        65_536,
        kinds.whole_number(19_456, 4_194_304, "KiB"),
        "Memory that hashing a password takes; a worker needs it once for each person who signs "
        "in at the same moment.",
    )
    password_hash_passes: int = fixed(
        3,
        kinds.whole_number(2, 100),
        "How often hashing a password goes over that memory. Hashes that were made at another "
        "cost are made anew when their owner signs in.",
    )
    sign_in_attempts_per_account: int = live(
        10,
        kinds.whole_number(1, 10_000),
        "Failed sign-ins of one account within the window before it must wait.",
    )
    sign_in_attempts_per_address: int = live(
        30,
        kinds.whole_number(1, 100_000),
        "Failed sign-ins from one address within the window before it must wait.",
    )
    second_factor_attempts_per_account: int = live(
        10,
        kinds.whole_number(1, 10_000),
        "Wrong codes or passkeys of one account within the window before it must wait.",
    )
    sign_in_attempts_window_seconds: int = live(
        600, kinds.whole_number(1, _DAY, "seconds"), "The window in which failed sign-ins count."
    )

    access_token_lifetime_seconds: int = live(
        7_200, kinds.whole_number(1, _YEAR, "seconds"), "Lifetime of an access token."
    )
    id_token_lifetime_seconds: int = live(
        3_600, kinds.whole_number(120, _DAY, "seconds"), "Lifetime of an ID token."
    )
    authorization_code_lifetime_seconds: int = live(
        600, kinds.whole_number(1, 600, "seconds"), "Lifetime of an authorization code."
    )
    refresh_replay_seconds: int = live(
        10,
        kinds.whole_number(0, 60, "seconds"),
        "How long a used refresh token gets the same new pair again: for clients that refresh in "
        "two places at once or lost an answer. After it, reuse counts as theft; 0 for at once.",
    )
    pushed_request_lifetime_seconds: int = live(
        90,
        kinds.whole_number(5, 600, "seconds"),
        "How long an application may take to send the browser after pushing a request (RFC 9126).",
    )
    require_pushed_authorization_requests: bool = live(
        False,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Refuse authorization requests that the application did not push beforehand (RFC 9126).",
    )
    dynamic_client_registration: bool = live(
        False,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Let clients register themselves with a personal access token that has api (RFC 7591).",
    )
    open_client_registration: bool = live(
        False,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Let clients register themselves without any token, where they may register at all.",
    )
    client_registration_rate_limit: str = live(
        "20/hour", kinds.rate(), "How often clients of one address may ask to be registered."
    )
    oauth2_device_grant_flow: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Let people approve devices by a code (RFC 8628).",
    )
    device_code_lifetime_seconds: int = live(
        300, kinds.whole_number(1, 1_800, "seconds"), "How long a device waits to be approved."
    )
    device_poll_interval_seconds: int = live(
        5, kinds.whole_number(1, 60, "seconds"), "How long a device waits between two polls."
    )
    user_code_attempts_per_user: int = live(
        10,
        kinds.whole_number(1, 10_000),
        "Wrong device codes of one user within the window before they must wait.",
    )
    user_code_attempts_per_address: int = live(
        30,
        kinds.whole_number(1, 100_000),
        "Wrong device codes from one address within the window before it must wait.",
    )
    user_code_attempts_in_all: int = live(
        1_000,
        kinds.whole_number(1, 10_000_000),
        "Wrong device codes of everybody within the window before everybody must wait.",
    )
    user_code_attempts_window_seconds: int = live(
        600, kinds.whole_number(1, _DAY, "seconds"), "The window in which wrong device codes count."
    )
    password_authentication_enabled_for_git: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Accept passwords in the password grant; the name is the one that GitLab gives it.",
    )
    password_grant_without_client: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Let the password grant work without an application.",
    )
    personal_access_token_lifetime_days: int = live(
        365,
        kinds.whole_number(1, 3_650, "days"),
        "Lifetime of a personal access token that is made without an expiry.",
    )
    expiring_token_notice_days: int = live(
        7,
        kinds.whole_number(0, 60, "days"),
        "Days before an access token expires that its owner is told by e-mail; 0 for never.",
    )
    require_https_redirect_uris: bool = live(
        False,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Refuse new redirect addresses with http, other than loopback.",
    )

    alert_body_limit_bytes: int = live(
        _MIB, kinds.whole_number(1_024, 64 * _MIB, "bytes"), "The largest webhook body."
    )
    alert_nesting_limit: int = live(
        100, kinds.whole_number(1, 500, "levels"), "The deepest nesting in a webhook body."
    )
    alert_rate_limit: str = live(
        "", kinds.rate(), "How many webhooks an integration accepts in a time."
    )
    api_rate_limit: str = live(
        "2000/minute",
        kinds.rate(),
        "How many API requests a user may make in a time, or an address without a good token.",
    )
    oauth_rate_limit: str = live(
        "3000/minute",
        kinds.rate(),
        "How often an address may ask for tokens, revoke, introspect and let devices ask.",
    )
    page_rate_limit: str = live(
        "", kinds.rate(), "How many pages a user, or an address without one, may open in a time."
    )
    ratelimit_storage_uri: str = fixed(
        "memory://",
        kinds.counter_storage(),
        "Where rate limits are counted; in memory each web process counts for itself.",
    )
    generic_alert_fingerprinting: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Group webhooks without a fingerprint by their content.",
    )
    delivery_keep_count: int = live(
        1_000, kinds.whole_number(10, 1_000_000), "Deliveries that an integration keeps at least."
    )
    delivery_keep_days: int = live(
        30, kinds.whole_number(1, 3_650, "days"), "How long deliveries are kept beyond that."
    )
    refused_delivery_samples_per_minute: int = live(
        30,
        kinds.whole_number(0, 10_000),
        "Refused webhooks of one integration and status kept each minute; the rest is counted.",
    )

    audit_event_keep_days: int = live(
        365,
        kinds.whole_number(1, 36_500, "days"),
        "How long audit events are kept. Whoever administers the running service can set no less "
        "than 30 days; only the environment can.",
        narrower=kinds.whole_number(30, 36_500, "days"),
    )
    mail_url: str = secret(
        "",
        kinds.mail_url(),
        "The mail server that sends all e-mail; without one none is sent.",
    )
    mail_from: str = fixed(
        "",
        kinds.mail_address(),
        "Sender address of all e-mail; gatebell@ the host of BASE_URL if empty.",
    )

    form_body_limit_bytes: int = fixed(
        _MIB, kinds.whole_number(16_384, 64 * _MIB, "bytes"), "The largest body of any other form."
    )
    page_size: int = live(20, kinds.whole_number(5, 200), "Rows on a page of a list.")
    tier: str = live(
        "ultimate", kinds.one_of("free", "premium", "ultimate"), "Which features are on."
    )
    release: str = live("18.0", kinds.release(), "The running release of the interfaces.")

    @property
    def uses_sqlite(self) -> bool:
        """Return whether the database is a SQLite file."""
        return self.database_url.startswith("sqlite")
