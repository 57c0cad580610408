"""Composition root, which is the only module that imports from every layer."""

from flask import Flask

from blueprints import register_blueprints
from blueprints.accounts.signing_in.attempts import lead_to_setup
from domain.core.clock import Clock, system_clock
from web.commands import register_commands
from web.http.compression import compress_static_files
from web.http.errors import render_errors
from web.http.flask_app import SynchronousFlask
from web.http.lifecycle import register_lifecycle
from web.http.long_requests import answer_long_requests
from web.http.request_log import add_request_ids_to_log
from web.http.routes import add_path_converters
from web.jobs.audit_log_lines import log_audit_events
from web.pages.templating import give_pages_their_context
from web.settings.reader import Settings, settings_from_environment
from web.setup import configure, start_extensions


def create_app(settings: Settings | None = None, *, clock: Clock = system_clock) -> Flask:
    """Build the application from the given settings, or from the settings of the environment."""
    settings = settings or settings_from_environment()
    app = SynchronousFlask(__name__, instance_path=str(settings.instance_path))
    configure(app, settings)
    add_request_ids_to_log()
    log_audit_events()
    start_extensions(app, settings, clock=clock)
    render_errors(app)
    answer_long_requests(app)
    give_pages_their_context(app)
    add_path_converters(app)
    register_blueprints(app)
    register_lifecycle(app, settings, lead_to_setup=lead_to_setup)
    compress_static_files(app)
    register_commands(app)
    return app
