"""Configuration of the web server. Its options are settings of Gatebell (docs/settings.md)."""

# gevent must replace functions of the standard library before another module creates locks or
# imports sockets.
from gevent import monkey

monkey.patch_all()

import gc

# Nothing loaded from here on becomes garbage. `wsgi.py` turns the collector on again.
gc.disable()

import logging
import os
from typing import Any

from domain.core.clock import read_system_clock
from domain.core.thread_pools import hashing_pool
from web.database.startup_checks import check_database_if_available
from web.database.startup_errors import CannotStartError
from web.jobs.host_heartbeat import start_host_heartbeat
from web.jobs.reachability import start_reachability_recorder
from web.logging import build_logging_configuration
from web.memory import limit_allocator_memory
from web.server.gevent_worker import DeadlineGeventWorker, ServerLog, block_signals_while_forking
from web.server.heavy_requests import (
    count_heavy_processes,
    open_heavy_channel,
    prepare_heavy_process,
)
from web.server.listen_address import get_listening_host
from web.server.memory_limits import count_parallel_hashes, find_memory_warning
from web.server.process_limits import raise_file_limit, shorten_switch_interval
from web.server.shared_counters import (
    close_shared_counters,
    get_shared_counters_path,
    open_shared_counters,
    reserve_counters,
)
from web.server.supervisor import wait_until_released
from web.server.temporary_files import check_temporary_directory
from web.server.tls import CertificateFilesError, load_certificate, set_served_certificate
from web.settings.environment import SettingsError, list_ignored_variables, load_settings
from web.standard_streams import unblock_standard_streams

unblock_standard_streams()
_log = logging.getLogger("gatebell.settings")
try:
    _settings = load_settings()
    check_temporary_directory()
    _certificate = load_certificate(_settings)
except (SettingsError, CertificateFilesError) as error:
    raise SystemExit(str(error)) from error

limit_allocator_memory()
shorten_switch_interval()
_heavy_channel = open_heavy_channel()
_counters_directory = get_shared_counters_path(_settings.instance_path, server_pid=os.getpid())
_host = get_listening_host(_settings.host)
_host = f"[{_host}]" if ":" in _host else _host

wsgi_app = "wsgi:app"
# Loading the app once before the fork lets workers start faster and share memory. The app opens no
# connection and no thread before its first request.
preload_app = True
bind = f"{_host}:{_settings.port}"
DeadlineGeventWorker.request_seconds = _settings.request_timeout_seconds
DeadlineGeventWorker.shutdown_delay_seconds = _settings.shutdown_delay_seconds
worker_class = DeadlineGeventWorker
_heavy_process_count = count_heavy_processes(_settings.web_concurrency)
workers = _settings.web_concurrency + _heavy_process_count
worker_connections = raise_file_limit(_settings.web_connections)
keepalive = _settings.keep_alive_seconds
# A process that shows no sign of life for this many seconds is replaced.
timeout = 30
graceful_timeout = _settings.shutdown_delay_seconds + _settings.graceful_timeout_seconds

set_served_certificate(_certificate)
if _certificate is not None:
    # gunicorn only uses these to detect that its URLs start with https.
    certfile, keyfile = str(_settings.tls_certificate), str(_settings.tls_key)
    do_handshake_on_connect = True

# Authorization requests may have long URLs.
limit_request_line = 8190
limit_request_fields = 100
limit_request_field_size = 16_380

# The app handles forwarded headers (TRUSTED_PROXIES); gunicorn ignores them.
forwarded_allow_ips = ""

# The app logs requests itself, without the query, which may contain a token.
accesslog = None
logger_class = ServerLog
logconfig_dict = build_logging_configuration(_settings)

# All servers of a user share the default directory of this socket.
control_socket_disable = True

# This must be set before the app imports prometheus_client.
raw_env = [f"PROMETHEUS_MULTIPROC_DIR={_counters_directory}"]


def pre_fork(server: Any, worker: Any) -> None:
    """Exempt loaded objects from garbage collection and choose the role of the new process.

    Searching them for garbage would copy their memory in each process. All processes share the
    limit of parallel password hashing. A worker becomes a heavy process if there are enough web
    processes among the newest workers.
    """
    gc.freeze()
    newest = sorted(server.WORKERS.values(), key=lambda each: each.age)[1 - server.num_workers :]
    web_processes = sum(not each.is_heavy for each in newest)
    worker.is_heavy = web_processes >= server.num_workers - _heavy_process_count
    hashing_pool.limit_host_concurrency(count_parallel_hashes())


def on_starting(server: Any) -> None:
    """Check the database and the settings, and create the counters that the web processes share."""
    wait_until_released()
    server.began_at = read_system_clock()
    try:
        check_database_if_available(_settings)
        for sentence in list_ignored_variables():
            _log.warning(sentence, extra={"event": "settings.variable_ignored"})
        if warning := find_memory_warning(_settings):
            _log.warning(warning, extra={"event": "settings.memory_too_low"})
    except CannotStartError as error:
        raise SystemExit(str(error)) from error
    open_shared_counters(_counters_directory)
    block_signals_while_forking()


def nworkers_changed(server: Any, wanted: int, _before: int | None) -> None:
    """Keep the configured number of processes despite SIGTTIN and SIGTTOU.

    With fewer, gunicorn ends the oldest processes. That could end all web processes or all heavy
    processes.
    """
    if wanted not in {0, server.cfg.workers}:  # 0 means that all processes end
        _log.warning(
            "SIGTTIN or SIGTTOU was ignored; set WEB_CONCURRENCY instead.",
            extra={"event": "server.signal_ignored"},
        )
        server.num_workers = server.cfg.workers


def post_fork(server: Any, worker: Any) -> None:
    """Reserve space for counters before anything is counted, or disable them."""
    worker.server_began_at = server.began_at
    if worker.is_heavy:
        prepare_heavy_process(worker)
    from web import metrics  # noqa: PLC0415 - not before it is known where it counts

    if not reserve_counters(_counters_directory, pid=os.getpid()):
        _log.warning(
            "No space for counters was found; this process records no metrics.",
            extra={"event": "server.counters_unavailable"},
        )
        metrics.disable_counters()
    else:
        metrics.initialize_counters()


def post_worker_init(worker: Any) -> None:
    """Start the host heartbeat, the reachability records and the storage of call counts."""
    app = worker.app.wsgi()
    extensions = getattr(app, "extensions", {})
    if worker.is_heavy:
        _heavy_channel.become_heavy_process(worker, app)
    else:
        start_host_heartbeat(_settings, "web")
        if "gatebell" in extensions:
            seconds = 2 * _settings.request_timeout_seconds
            _heavy_channel.become_web_process(app, request_seconds=seconds)
            connections = extensions["gatebell"].connections
            start_reachability_recorder(_settings, connections, began_at=worker.server_began_at)
    for flusher in _find_call_flushers(worker):
        flusher.start_flushing()


def worker_exit(_server: Any, worker: Any) -> None:
    """Store the remaining counts of calls."""
    for flusher in _find_call_flushers(worker):
        flusher.flush_and_stop()


def _find_call_flushers(worker: Any) -> list[Any]:
    """Return the flusher of call counts in a list, which is empty for other applications."""
    extensions = getattr(worker.app.wsgi(), "extensions", {})
    return [extensions["gatebell_calls"]] if "gatebell_calls" in extensions else []


def on_exit(_server: Any) -> None:
    """Remove the shared counters."""
    close_shared_counters(_counters_directory)
