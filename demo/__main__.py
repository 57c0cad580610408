"""Runs `make demo`: fills a separate database, starts the service, and sends alerts to it."""

import logging
import os
import signal
import sys
from threading import Event, Thread
from time import monotonic

from demo.cast import PEOPLE
from demo.folder import Memory, NotEmptyError
from demo.machine import DemoError
from demo.monitor import Monitor
from demo.service import LOG, check_port, environment_of, prepare, running
from demo.telephones import telephones
from demo.television import Television
from web.database.start_errors import CannotStartError
from web.settings.reader import Settings, SettingsError, read_settings


def main() -> None:
    """Run until interrupted by Ctrl+C or SIGTERM."""
    logging.getLogger().setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    environment = environment_of(os.environ)  # noqa: TID251 - handed to the service as it is
    try:
        settings = read_settings(environment)
        check_port(settings)
        memory = _prepared(settings)
        with telephones(port=memory.telephones, is_loud=True), running(settings, environment) as it:
            _introduce(settings, memory)
            Thread(target=Monitor(memory.places).run, args=(Event(),), daemon=True).start()
            _turn_television_on(settings, memory)
            it.wait()
            _say(f"The service has ended; {settings.instance_path / LOG} says why.")
    except KeyboardInterrupt:
        _say("Stopped.")
    except (SettingsError, CannotStartError, NotEmptyError, DemoError, OSError) as error:
        sys.exit(f"{error}")


def _prepared(settings: Settings) -> Memory:
    begun = monotonic()
    memory = prepare(settings, say=_say)
    _say(f"Ready after {monotonic() - begun:.0f} seconds.")
    return memory


def _turn_television_on(settings: Settings, memory: Memory) -> None:
    if memory.television_id:
        television = Television(
            base_url=settings.base_url, client_id=memory.television_id, say=_say
        )
        Thread(target=television.run, args=(Event(),), daemon=True).start()


def _introduce(settings: Settings, memory: Memory) -> None:
    _say(f"\nSign in at {settings.base_url} with the password {memory.password} as\n")
    for person in PEOPLE:
        what = f"{person.role}, {person.shows}" if person.role else person.shows
        _say(f"  {person.username:8} {person.name:15} {what}")
    _say("\nA monitor keeps sending alerts to acme/shop; what people are paged about follows.")
    _say(f"The log of the service is in {settings.instance_path / LOG}. Ctrl+C stops everything.\n")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
