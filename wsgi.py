"""WSGI application, as web servers and the `flask` command load it."""

from app import create_app
from web.logging import configure_logging
from web.memory import keep_what_is_loaded
from web.preloading import load_for_requests
from web.settings.reader import SettingsError, settings_from_environment

try:
    _settings = settings_from_environment()
except SettingsError as error:
    raise SystemExit(str(error)) from error

configure_logging(_settings)
app = create_app(_settings)
load_for_requests()
keep_what_is_loaded()
