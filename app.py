"""Composition root, which is the only module that imports from every layer."""

from flask import Flask

from blueprints import register_blueprints
from blueprints.accounts.signing_in.attempts import lead_to_setup
from domain.core.clock import Clock, system_clock
from web.access.rate_limits import start_limits
from web.commands import register_commands
from web.http.compression import compress_pages_and_files
from web.http.cors import allow_cross_origin
from web.http.endpoints import cross_origin_policies
from web.http.errors import render_errors
from web.http.flask_app import SynchronousFlask
from web.http.long_requests import answer_long_requests
from web.http.request_log import log_requests
from web.http.routes import add_path_converters
from web.http.security_headers import protect_answers
from web.http.transactions import commit_returned_responses
from web.jobs.audit_log_lines import log_audit_events
from web.pages.double_taps import mark_pages_after_changes
from web.pages.templating import give_pages_their_context
from web.server.request_body import discard_unread_bodies
from web.settings.reader import Settings, settings_from_environment
from web.setup import check_requests, configure, start_extensions


def create_app(settings: Settings | None = None, *, clock: Clock = system_clock) -> Flask:
    """Build the application from the given settings, or from the settings of the environment."""
    settings = settings or settings_from_environment()
    app = SynchronousFlask(__name__, instance_path=str(settings.instance_path))
    configure(app, settings)
    log_requests(app, settings)
    log_audit_events()
    protect_answers(app)
    discard_unread_bodies(app)
    commit_returned_responses(app)
    start_extensions(app, settings, clock=clock)
    render_errors(app)
    answer_long_requests(app)
    give_pages_their_context(app)
    add_path_converters(app)
    register_blueprints(app)
    allow_cross_origin(app, cross_origin_policies(app))
    check_requests(app)
    mark_pages_after_changes(app)
    compress_pages_and_files(app)
    start_limits(app)
    lead_to_setup(app)
    register_commands(app)
    return app
