"""The service that runs with the demo's database."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from urllib.error import URLError
from urllib.request import urlopen

from demo.folder import DemoState, check_is_empty, get_demo_folder
from demo.furnish import fill_demo_database
from demo.machine import DemoError
from demo.telephones import receive_messages
from domain.core.clock import read_system_clock
from web.database.schema import migrate_to_newest
from web.database.startup_checks import register_secret_key
from web.instance_files import make_instance_directory
from web.settings.environment import Settings, parse_settings

ROOT = Path(__file__).parents[1]
SERVICE_LOG_FILE = "demo.log"
_HIGH_RATE_LIMIT = "1000000/minute"
_STOP_SECONDS = 60


def build_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the service's environment: the given environment with the demo's own values."""
    port = given.get("PORT") or "8000"
    own = {
        "INSTANCE_PATH": str(get_demo_folder(given, ROOT)),
        "PORT": port,
        # Webhooks and pages are sent to the loopback interface.
        "OUTGOING_PRIVATE_ADDRESSES": "127.0.0.0/8",
        "OUTGOING_CONTACT_HOSTS": "127.0.0.1:1-65535",
        # An application registers itself.
        "DYNAMIC_CLIENT_REGISTRATION": "true",
    }
    return {"BASE_URL": f"http://127.0.0.1:{port}", **given, **own}


def create_fresh_environment(folder: str) -> dict[str, str]:
    """Return the environment of a demo in `build/<folder>`, which is deleted first."""
    given = {**os.environ, "INSTANCE_PATH": str(ROOT / "build" / folder)}  # noqa: TID251 - as demo/__main__.py
    given.pop("DATABASE_URL", None)
    shutil.rmtree(given["INSTANCE_PATH"], ignore_errors=True)
    return build_environment(given)


def prepare_demo(settings: Settings, *, say: Callable[[str], None]) -> DemoState:
    """Fill the database unless it has already been filled.

    Raise DatabaseNotEmptyError if the database contains other data.
    """
    known = DemoState.read_stored_state(settings)
    if known is not None:
        return known
    make_instance_directory(settings.instance_path)
    migrate_to_newest(settings)
    check_is_empty(settings)
    register_secret_key(settings)
    with receive_messages(port=0, is_loud=False) as port:
        end = read_system_clock().replace(microsecond=0)
        memory = fill_demo_database(_lift_rate_limits(settings), telephones=port, end=end, say=say)
    memory.write_state(settings)
    return memory


def _lift_rate_limits(settings: Settings) -> Settings:
    """Return settings with rate limits that allow weeks to pass in seconds."""
    environment = {
        "INSTANCE_PATH": str(settings.instance_path),
        "DATABASE_URL": settings.database_url,
        "SECRET_KEY": settings.secret_key,
        "BASE_URL": settings.base_url,
        "OUTGOING_PRIVATE_ADDRESSES": settings.outgoing_private_addresses,
        "OUTGOING_CONTACT_HOSTS": settings.outgoing_contact_hosts,
        "DYNAMIC_CLIENT_REGISTRATION": "true",
        "ALERT_RATE_LIMIT": _HIGH_RATE_LIMIT,
        "API_RATE_LIMIT": _HIGH_RATE_LIMIT,
        "HEARTBEAT_RATE_LIMIT": _HIGH_RATE_LIMIT,
        "HEARTBEAT_ADDRESS_RATE_LIMIT": _HIGH_RATE_LIMIT,
        "OAUTH_RATE_LIMIT": _HIGH_RATE_LIMIT,
        "SIGN_IN_ATTEMPTS_PER_ADDRESS": "100000",
    }
    return parse_settings(environment)


def check_port_free(settings: Settings) -> None:
    """Check that no other program listens on the service's port. Raise DemoError if one does."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", settings.port)) == 0:
            message = (
                f"Port {settings.port} is in use. Choose another one, such as "
                f"PORT={settings.port + 1} make demo."
            )
            raise DemoError(message)


@contextmanager
def run_service(
    settings: Settings, environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the service with its log in a file, and stop it at the end."""
    command = [sys.executable, "-m", "web.server.serve"]
    with (settings.instance_path / SERVICE_LOG_FILE).open("ab") as log:
        service = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        _wait_for_service(service, settings)
        yield service
    finally:
        service.terminate()
        service.wait(_STOP_SECONDS)


def _wait_for_service(service: "subprocess.Popen[bytes]", settings: Settings) -> None:
    while service.poll() is None:
        try:
            with urlopen(f"{settings.base_url}/healthz", timeout=2):  # noqa: S310 - our own
                return
        except (URLError, OSError):
            sleep(0.2)
    message = f"The service has ended; {settings.instance_path / SERVICE_LOG_FILE} says why."
    raise DemoError(message)
