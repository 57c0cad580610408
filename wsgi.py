"""WSGI application that web servers and the `flask` command load."""

from app import create_app
from web.logging import configure_logging
from web.memory import freeze_loaded_objects
from web.preloading import preload_request_modules
from web.settings.environment import SettingsError, load_settings

try:
    _settings = load_settings()
except SettingsError as error:
    raise SystemExit(str(error)) from error

configure_logging(_settings)
app = create_app(_settings)
preload_request_modules()
freeze_loaded_objects()
