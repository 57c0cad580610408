"""A Django project with django-oauth-toolkit, configured as in its documentation."""

import os
from urllib.parse import parse_qs, unquote, urlsplit

_address = urlsplit(os.environ["DATABASE_URL"])

SECRET_KEY = "of a benchmark that is thrown away"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "oauth2_provider",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _address.path.removeprefix("/"),
        "USER": unquote(_address.username or ""),
        "PASSWORD": unquote(_address.password or ""),
        "HOST": parse_qs(_address.query).get("host", [_address.hostname or ""])[0],
        "PORT": _address.port or "",
        # One persistent connection per thread, since a new one for each request is much slower.
        "CONN_MAX_AGE": None,
    }
}
OAUTH2_PROVIDER = {
    "SCOPES": {"read": "Read", "introspection": "Introspect"},
    "PKCE_REQUIRED": False,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 86_400,
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 86_400,
    "OAUTH_DEVICE_VERIFICATION_URI": "http://127.0.0.1/o/device",
}
# Errors are logged to the console, as in the other servers.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"django.request": {"handlers": ["console"], "level": "ERROR"}},
}
