"""The Flask application for commands, with the database and the services but without views."""

from flask import Flask

from domain.core.clock import Clock, read_system_clock
from web.jobs.audit_log_lines import register_audit_logging
from web.service_setup import start_services
from web.settings.environment import Settings, load_settings


def create_command_app(
    settings: Settings | None = None, *, clock: Clock = read_system_clock
) -> Flask:
    """Build the application from the given settings, or from the settings of the environment."""
    settings = settings or load_settings()
    app = Flask(__name__, instance_path=str(settings.instance_path))
    register_audit_logging()
    start_services(app, settings, clock=clock)
    return app
