"""Runs `make demo`: fills a separate database, starts the service, and sends alerts to it."""

import logging
import os
import signal
import sys
from threading import Event, Thread
from time import monotonic

from demo.cast import DEMO_USERS
from demo.folder import DatabaseNotEmptyError, DemoState
from demo.machine import DemoError
from demo.monitor import Monitor
from demo.service import (
    SERVICE_LOG_FILE,
    build_environment,
    check_port_free,
    prepare_demo,
    run_service,
)
from demo.telephones import receive_messages
from demo.television import Television
from web.database.startup_errors import CannotStartError
from web.settings.environment import Settings, SettingsError, parse_settings


def main() -> None:
    """Run until interrupted by Ctrl+C or SIGTERM."""
    logging.getLogger().setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    environment = build_environment(os.environ)  # noqa: TID251 - handed to the service as it is
    try:
        settings = parse_settings(environment)
        check_port_free(settings)
        memory = _prepare_demo(settings)
        with (
            receive_messages(port=memory.telephones, is_loud=True),
            run_service(settings, environment) as it,
        ):
            _print_introduction(settings, memory)
            Thread(target=Monitor(memory.places).run_steps, args=(Event(),), daemon=True).start()
            _start_television(settings, memory)
            it.wait()
            _print_line(
                f"The service has ended; {settings.instance_path / SERVICE_LOG_FILE} says why."
            )
    except KeyboardInterrupt:
        _print_line("Stopped.")
    except (SettingsError, CannotStartError, DatabaseNotEmptyError, DemoError, OSError) as error:
        sys.exit(f"{error}")


def _prepare_demo(settings: Settings) -> DemoState:
    begun = monotonic()
    memory = prepare_demo(settings, say=_print_line)
    _print_line(f"Ready after {monotonic() - begun:.0f} seconds.")
    return memory


def _start_television(settings: Settings, memory: DemoState) -> None:
    if memory.television_id:
        television = Television(
            base_url=settings.base_url, client_id=memory.television_id, say=_print_line
        )
        Thread(target=television.wait_for_approval, args=(Event(),), daemon=True).start()


def _print_introduction(settings: Settings, memory: DemoState) -> None:
    _print_line(f"\nSign in at {settings.base_url} with the password {memory.password} as\n")
    for person in DEMO_USERS:
        what = f"{person.role}, {person.shows}" if person.role else person.shows
        _print_line(f"  {person.username:8} {person.name:15} {what}")
    _print_line(
        "\nA monitor keeps sending alerts to acme/shop; what people are paged about follows."
    )
    _print_line(
        f"The log of the service is in {settings.instance_path / SERVICE_LOG_FILE}. Ctrl+C stops "
        "everything.\n"
    )


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
