"""The composition root: the only file that sees every layer."""

from flask import Flask

from blueprints import LED_TO, MACHINES, PAGES, register_blueprints
from domain.clock import Clock, system_clock
from web.audit_stream import log_audit_events
from web.commands import register_commands
from web.http.cors import answer_other_origins
from web.http.errors import render_errors
from web.http.rate_limits import limit_pages
from web.http.request_log import watch_requests
from web.http.routes import know_names
from web.http.security_headers import protect_answers
from web.http.synchronous import SynchronousFlask
from web.http.transactions import commit_what_is_returned
from web.pages.context import give_pages_their_context
from web.pages.filters import init_app as register_filters
from web.server.arriving_body import leave_unread_bodies
from web.settings.reader import Settings, settings_from_environment
from web.setup import configure, guard_pages, start_extensions
from web.signing_in.forced_password_change import insist_on_own_passwords


def create_app(settings: Settings | None = None, *, clock: Clock = system_clock) -> Flask:
    """Build the application from its settings; by default those of the environment."""
    settings = settings or settings_from_environment()
    app = SynchronousFlask(__name__, instance_path=str(settings.instance_path))
    configure(app, settings)
    watch_requests(app, settings)
    log_audit_events()
    protect_answers(app, led_to=LED_TO)
    leave_unread_bodies(app)
    answer_other_origins(app)
    commit_what_is_returned(app)
    start_extensions(app, settings, clock=clock)
    render_errors(app)
    register_filters(app)
    give_pages_their_context(app)
    know_names(app)
    register_blueprints(app)
    guard_pages(app, PAGES, MACHINES)
    limit_pages(app, PAGES)
    insist_on_own_passwords(app, PAGES)
    register_commands(app)
    return app
