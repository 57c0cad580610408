"""Application of the command line, with the database and the services but without views."""

from flask import Flask

from domain.core.clock import Clock, system_clock
from web.jobs.audit_log_lines import log_audit_events
from web.service_setup import start_services
from web.settings.reader import Settings, settings_from_environment


def create_command_app(settings: Settings | None = None, *, clock: Clock = system_clock) -> Flask:
    """Build the application from the given settings, or from the settings of the environment."""
    settings = settings or settings_from_environment()
    app = Flask(__name__, instance_path=str(settings.instance_path))
    log_audit_events()
    start_services(app, settings, clock=clock)
    return app
