"""Starts the first processes of `make run` as forks, so that they share memory.

Two separate interpreters would both load SQLAlchemy, the models and other large libraries. Instead,
this process loads them, and forks one process for each program. It then becomes the supervisor
(`execve`), which needs none of these modules and keeps the forked processes as its children.

The forked processes wait until the supervisor releases them (`wait_until_released`). If the
supervisor dies before its watchdog knows them, they exit.

A program that the supervisor restarts runs in a new interpreter, so it never mixes loaded modules
with files that an upgrade has changed in the meantime.
"""

import gc
import os
import runpy
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import orjson

from web.memory import suspend_garbage_collection
from web.server.process_title import set_process_title
from web.server.supervisor import (
    HOLD_VARIABLE,
    STOP_SIGNALS,
    NotifySocket,
    StartedProgram,
    SupervisedProgram,
    wait_until_released,
)
from web.settings.environment import (
    build_child_environment,
    pop_environment_variable,
    set_environment,
)

#: Modules that the worker and the web server both need. The web server's first process loads gevent
#: after them. None of them may therefore keep a function that gevent replaces, such as `sleep`.
SHARED_MODULES = (
    "cryptography.fernet",
    "cryptography.x509",
    "models",
    "pydantic.functional_validators",
    "pydantic.networks",
    "pydantic.root_model",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
)
#: Environment variable with the forked processes, for the program that supervises them.
_STARTED_VARIABLE = "GATEBELL_STARTED"
#: Descriptor of standard error, the last of the three standard streams.
_LAST_STREAM = 2


def load_shared_modules() -> None:
    """Load the shared modules, without opening a connection or starting a thread."""
    with suspend_garbage_collection():
        for name in SHARED_MODULES:
            import_module(name)
        import_module("sqlalchemy.orm").configure_mappers()
    gc.freeze()


def fork_programs(programs: Mapping[str, SupervisedProgram]) -> NoReturn:
    """Fork a process for each program, and become the supervisor of these processes.

    The processes wait until the supervisor releases them. Stop signals are blocked until the
    supervisor handles them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    load_shared_modules()
    started: dict[str, StartedProgram] = {}
    for name, program in programs.items():
        notify = None if program.watchdog_seconds is None else NotifySocket()
        held_by, release = os.pipe()
        kept = [each for other in started.values() for each in other.descriptors]
        made = StartedProgram(
            pid=0,
            release=release,
            notify_address=None if notify is None else notify.address,
            notify_descriptor=None if notify is None else notify.detach(),
        )
        pid = os.fork()
        if pid == 0:
            _run_program(program, made, held_by=held_by, closed=(*kept, *made.descriptors))
        os.close(held_by)
        started[name] = made._replace(pid=pid)
    for each in started.values():
        each.set_inheritable(is_inheritable=True)
    records = orjson.dumps({name: tuple(each) for name, each in started.items()}).decode()
    environment = build_child_environment(**{_STARTED_VARIABLE: records})
    os.execve(sys.executable, (sys.executable, "-m", "web.server.serve"), environment)  # noqa: S606 - ourselves


def pop_started_programs() -> Mapping[str, StartedProgram] | None:
    """Return the programs that this process forked before it became the supervisor.

    Return None if this process has not forked any programs yet.
    """
    text = pop_environment_variable(_STARTED_VARIABLE)
    if text is None:
        return None
    started = {name: StartedProgram(*each) for name, each in orjson.loads(text).items()}
    for each in started.values():
        each.set_inheritable(is_inheritable=False)
    return started


def _run_program(
    program: SupervisedProgram, made: StartedProgram, *, held_by: int, closed: Sequence[int]
) -> NoReturn:
    """Run a program in this forked process, as `python -m` does in a new process."""
    os.setsid()
    for descriptor in (*closed, *_list_inherited_descriptors()):
        os.close(descriptor)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    variables = {HOLD_VARIABLE: str(held_by)}
    if made.notify_address is not None:
        variables["NOTIFY_SOCKET"] = made.notify_address
    set_environment(build_child_environment(**variables))
    _interpreter, option, module, *arguments = program.first_command or program.command
    set_process_title(option, module)
    if program.waits_for is None:
        wait_until_released()
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


def _list_inherited_descriptors() -> Sequence[int]:
    """Return the descriptors that this process inherited when it was started, except streams."""
    found = [int(each.name) for each in Path("/dev/fd").iterdir()]
    return [each for each in found if each > _LAST_STREAM and _is_inheritable(each)]


def _is_inheritable(descriptor: int) -> bool:
    with suppress(OSError):  # the descriptor that listed the others is closed
        return os.get_inheritable(descriptor)
    return False
