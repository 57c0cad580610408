"""Names of environment variables that look like settings, for warnings about ignored variables.

The names come from other products and from removed settings.
"""

_OTHER_NAMES_BY_SETTING = {
    "BASE_URL": (
        *("APP_URL", "CANONICAL_URL", "EXTERNAL_URL", "ISSUER", "ISSUER_URL", "PUBLIC_URL"),
        *("ROOT_URL", "SERVER_URL", "SITE_URL"),
    ),
    "DATABASE_URL": (
        *("DATABASE", "DATABASE_DSN", "DATABASE_HOST", "DATABASE_NAME", "DATABASE_PASSWORD"),
        *("DATABASE_URI", "DATABASE_USER", "DB_DSN", "DB_HOST", "DB_NAME", "DB_PASSWORD"),
        *("DB_URI", "DB_URL", "DB_USER", "PG_URL", "POSTGRES_DSN", "POSTGRES_URL"),
        "SQLALCHEMY_DATABASE_URI",
    ),
    "HOST": ("BIND", "BIND_ADDRESS", "LISTEN", "LISTEN_ADDRESS", "LISTEN_HOST"),
    "INSTANCE_PATH": ("DATA_DIR", "DATA_PATH", "INSTANCE_DIR", "STATE_DIR"),
    "MAIL_FROM": (
        *("DEFAULT_FROM_EMAIL", "EMAIL_FROM", "MAIL_DEFAULT_SENDER", "MAIL_SENDER"),
        *("SMTP_FROM", "SMTP_SENDER"),
    ),
    "MAIL_URL": (
        *("EMAIL_HOST", "EMAIL_PASSWORD", "EMAIL_URL", "EMAIL_USER", "MAIL_HOST", "MAIL_PASSWORD"),
        *("MAIL_PORT", "MAIL_SERVER", "MAIL_USER", "MAIL_USERNAME", "MAILER_DSN", "MAILER_URL"),
        *("SMTP_ADDRESS", "SMTP_HOST", "SMTP_PASSWORD", "SMTP_PORT", "SMTP_SERVER", "SMTP_URL"),
        *("SMTP_USER", "SMTP_USERNAME"),
    ),
    "OUTGOING_PROXY": ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "PROXY_URL"),
    "PORT": ("BIND_PORT", "HTTP_PORT", "LISTEN_PORT", "SERVER_PORT"),
    "RATELIMIT_STORAGE_URI": (
        *("CACHE_URL", "LIMITER_STORAGE_URI", "MEMCACHED_URL", "RATELIMIT_STORAGE_URL"),
        *("RATE_LIMIT_STORAGE", "REDIS_HOST", "REDIS_SERVER", "REDIS_URI", "REDIS_URL"),
        "VALKEY_URL",
    ),
    "REPOSITORIES_PATH": ("GIT_DATA_DIR", "GIT_ROOT", "REPO_PATH", "REPOS_PATH"),
    "SECRET_KEY": (
        *("APP_KEY", "APP_SECRET", "FLASK_SECRET_KEY", "SECRET", "SECRET_KEY_BASE"),
        "SESSION_SECRET",
    ),
    "SECRET_KEY_FALLBACKS": (
        *("OLD_SECRET_KEY", "OLD_SECRET_KEYS", "PREVIOUS_SECRET_KEY", "SECRET_KEYS"),
        "SECRET_KEY_FALLBACK",
    ),
    "TLS_CERTIFICATE": ("SSL_CERT", "SSL_CERTIFICATE", "TLS_CERT", "TLS_CRT"),
    "TLS_KEY": ("SSL_CERTIFICATE_KEY", "SSL_KEY", "SSL_PRIVATE_KEY", "TLS_PRIVATE_KEY"),
    "TRUSTED_CA_FILE": ("CA_BUNDLE", "CA_CERT", "CA_FILE", "TRUSTED_CA", "TRUSTED_CAS"),
    "TRUSTED_PROXIES": (
        *("NUM_PROXIES", "PROXY_COUNT", "PROXY_FIX", "REAL_IP_FROM", "REVERSE_PROXY"),
        *("TRUST_PROXIES", "TRUST_PROXY", "TRUSTED_PROXY", "TRUSTED_PROXY_COUNT"),
    ),
    "WEB_CONCURRENCY": ("GUNICORN_WORKERS", "WEB_PROCESSES", "WEB_WORKERS", "WORKERS"),
}
#: Settings by the names that other products use.
SETTINGS_BY_OTHER_NAME = {
    name: setting for setting, names in _OTHER_NAMES_BY_SETTING.items() for name in names
}
_SELF_MONITORING_DOCUMENT = "docs/health-and-metrics.md#monitor-gatebell-itself"
#: Settings of earlier releases, each with the document that describes the replacement.
REMOVED_SETTINGS = dict.fromkeys(
    (
        *("SELF_MONITOR_PROJECT", "SELF_MONITOR_INTERVAL_SECONDS"),
        *("SELF_MONITOR_DEADLINE_SECONDS", "SELF_MONITOR_SWITCH_URL"),
    ),
    _SELF_MONITORING_DOCUMENT,
)
