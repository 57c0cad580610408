"""Fixtures that run short programs within the test process, since a new process takes seconds."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.support.service.live import Done, LiveGatebell
from web.jobs import worker
from web.server import migrate, serve

#: Runs a program that ends by itself, with its own environment variables.
RunHere = Callable[..., Done]
_MAINS = {"make run": serve.main, "make migrate": migrate.main, "worker": worker.main}


@contextmanager
def _logging_as_it_was() -> Iterator[None]:
    """Restore the logging setup that a program changes."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunHere:
    """Return a function that runs programs in this process, and fails if they continue."""

    def fail(*_: object, **_named: object) -> None:
        pytest.fail("it has started")

    def run(live: LiveGatebell, program: str, **variables: str) -> Done:
        capsys.readouterr()
        with monkeypatch.context() as patch, _logging_as_it_was():
            patch.setattr(os, "environ", live.environment | variables)
            patch.setattr(serve, "fork_programs", _first_worker)
            for program_module in (serve, worker):
                patch.setattr(program_module, "run_in_child", lambda work: work())
            patch.setattr(worker, "start_host_heartbeat", fail)
            status, told = _ended(_MAINS[program])
        said = capsys.readouterr()
        return Done(status, said.out, said.err + told)

    return run


def _first_worker(*_: object, **_named: object) -> None:
    """Run the first program that the supervisor of `make run` starts."""
    worker.main(is_first=True)


def _ended(main: Callable[[], None]) -> tuple[int, str]:
    """Run a program, and return its status and the last output of the interpreter."""
    try:
        main()
    except SystemExit as end:
        return (1, f"{end.code}\n") if isinstance(end.code, str) else (int(end.code or 0), "")
    return 0, ""
