"""Tests that sign-ins do not exhaust memory in a small control group of Linux."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import sleep

import pytest

from domain.core.thread_pools import HostLimitedExecutor
from tests.faults.passwords import sign_in_wrongly
from tests.support.accounts.people import alice
from tests.support.service.live import NewService, running
from web.server import memory_limits
from web.settings.environment import parse_settings

_VERSION_1, _VERSION_2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
#: The minimum memory of docs/capacity.md.
MINIMA = {"standard": 512, "small": 448}
#: The default costs; other tests use cheap hashes.
_COSTS = {"PASSWORD_HASH_PASSES": "3", "PASSWORD_HASH_MEMORY_KIB": "", "WEB_CONCURRENCY": ""}
_SIGN_INS = 6


@pytest.fixture
def group() -> Iterator[tuple[Path, str]]:
    """Create a control group for this test, and yield its folder and the name of its limit file."""
    is_first = _VERSION_1.is_dir()
    folder = (_VERSION_1 if is_first else _VERSION_2) / f"gatebell-test-{os.getpid()}"
    name = "memory.limit_in_bytes" if is_first else "memory.max"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("only root can limit memory here")
    if not (folder / name).exists():
        folder.rmdir()
        pytest.skip("there is no controller of memory")
    yield folder, name
    for _ in range(100):  # The group can be removed after its last process has ended.
        with suppress(OSError):
            folder.rmdir()
            break
        sleep(0.1)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("profile", MINIMA)
def test_concurrent_sign_ins_do_not_exhaust_the_minimum_memory(
    profile: str, group: tuple[Path, str], new_service: NewService
) -> None:
    folder, name = group
    (folder / name).write_text(str(MINIMA[profile] * 1024 * 1024))
    live = new_service("sqlite", PROFILE=profile, **_COSTS)
    serve = f"echo $$ > {folder}/cgroup.procs && exec {sys.executable} -m web.server.serve"
    live.python, live.program = "/bin/sh", ("-c", serve)
    with running(live):
        person = alice(live)
        with ThreadPoolExecutor(_SIGN_INS) as several:
            found = list(several.map(lambda _: sign_in_wrongly(live, person), range(_SIGN_INS)))
    assert set(found) == {422}
    assert '"event":"supervisor.' not in live.log_text()
    assert "was sent SIGKILL" not in live.log_text()
    assert "This host has" not in live.log_text()


def test_processes_take_turns_at_work_that_needs_much_memory(tmp_path: Path) -> None:
    executor, place = HostLimitedExecutor(threads=1), tmp_path / "working"

    def work() -> None:
        place.touch(exist_ok=False)  # This call fails while another process works.
        sleep(0.02)
        place.unlink()

    executor.limit_host_concurrency(1)
    children = [os.fork() for _ in range(1)]
    if 0 in children:
        outcomes = [executor._run_task(work)[1] for _ in range(5)]  # noqa: SLF001 - without greenlets
        os._exit(any(outcomes))
    outcomes = [executor._run_task(work)[1] for _ in range(5)]  # noqa: SLF001 - as a web process does it
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert (outcomes, statuses) == ([None] * 5, [0])


def test_too_little_memory_causes_a_warning_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"INSTANCE_PATH": str(tmp_path)}
    standard, small = (parse_settings({**given, "PROFILE": each}) for each in MINIMA)
    assert (small.web_concurrency, small.password_hash_memory_kib) == (1, 19_456)
    assert (
        parse_settings({**given, "PROFILE": "small", "WEB_CONCURRENCY": "3"}).web_concurrency == 3
    )
    for least, settings in zip(MINIMA.values(), (standard, small), strict=True):
        monkeypatch.setattr(memory_limits, "find_memory_limit_mib", partial(int, least))
        assert memory_limits.find_memory_warning(settings) is None
    monkeypatch.setattr(memory_limits, "find_memory_limit_mib", lambda: 300)
    assert "or set PROFILE=small" in (memory_limits.find_memory_warning(standard) or "")
    assert "Provide more memory." in (memory_limits.find_memory_warning(small) or "")
