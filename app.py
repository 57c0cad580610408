"""Composition root: the only module that imports from every layer."""

from flask import Flask

from blueprints import register_blueprints
from blueprints.accounts.sign_in.attempts import redirect_to_required_setup
from domain.core.clock import Clock, read_system_clock
from web.commands import register_commands
from web.flask_setup import configure_flask, start_extensions
from web.http.compression import compress_static_files
from web.http.errors import register_error_handlers
from web.http.flask_app import SynchronousFlask
from web.http.lifecycle import register_middleware_and_hooks
from web.http.long_urls import register_long_url_page
from web.http.request_log import add_request_ids_to_log
from web.http.url_converters import add_path_converters
from web.jobs.audit_log_lines import register_audit_logging
from web.pages.templating import configure_templates
from web.settings.environment import Settings, load_settings


def create_app(settings: Settings | None = None, *, clock: Clock = read_system_clock) -> Flask:
    """Build the application from the given settings, or from environment variables."""
    settings = settings or load_settings()
    app = SynchronousFlask(__name__, instance_path=str(settings.instance_path))
    configure_flask(app, settings)
    add_request_ids_to_log()
    register_audit_logging()
    start_extensions(app, settings, clock=clock)
    register_error_handlers(app)
    register_long_url_page(app)
    configure_templates(app)
    add_path_converters(app)
    register_blueprints(app)
    register_middleware_and_hooks(app, settings, lead_to_setup=redirect_to_required_setup)
    compress_static_files(app)
    register_commands(app)
    return app
