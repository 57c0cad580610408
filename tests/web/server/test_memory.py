"""Tests that memory of large requests is returned to the system and that threads share arenas."""

import platform
import subprocess
import sys

import pytest

LARGE = 2**22
PROGRAM = f"""
import sys
from pathlib import Path
from web.memory import limit_allocator_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1:]:
    limit_allocator_memory()
large = b"x" * {LARGE}
del large  # glibc learns that such blocks come and go
before = resident()
large = b"x" * {LARGE}
lasting = b"y" * 4000
del large
print(resident() - before)
"""
THREADS = 4
#: Number of bytes that glibc reserves at least for each arena.
ARENA = 2**26
IN_THREADS = f"""
import sys
from pathlib import Path
from threading import Barrier, Thread
from web.memory import limit_allocator_memory

def reserved():
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096

if sys.argv[1:]:
    limit_allocator_memory()
before, together = reserved(), Barrier({THREADS} + 1)

def work():
    blocks = [b"x" * size for size in range(1000, 2000)]
    together.wait()
    together.wait()
    del blocks

threads = [Thread(target=work) for _ in range({THREADS})]
for each in threads:
    each.start()
together.wait()
print(reserved() - before)
together.wait()
"""


def bytes_of(program: str, *arguments: str) -> int:
    """Run a program and return the number that it prints."""
    done = subprocess.run(
        (sys.executable, "-c", program, *arguments), capture_output=True, text=True, check=True
    )
    return int(done.stdout)


only_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc",
    reason="other C libraries keep no large blocks, and have no arenas",
)


@only_glibc
def test_large_blocks_are_returned_to_the_system() -> None:
    assert bytes_of(PROGRAM, "yes") < LARGE // 2 < bytes_of(PROGRAM)


@only_glibc
def test_threads_share_memory_arenas() -> None:
    assert bytes_of(IN_THREADS, "yes") + THREADS * ARENA // 2 < bytes_of(IN_THREADS)
