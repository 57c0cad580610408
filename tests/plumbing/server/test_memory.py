"""What a large request took goes back to the system."""

import platform
import subprocess
import sys

import pytest

LARGE = 2**22
PROGRAM = f"""
import sys
from pathlib import Path
from web.server.process_limits import return_large_blocks

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1:]:
    return_large_blocks()
large = b"x" * {LARGE}
del large  # glibc learns that such blocks come and go
before = resident()
large = b"x" * {LARGE}
lasting = b"y" * 4000
del large
print(resident() - before)
"""


def kept(*arguments: str) -> int:
    """Return how many bytes a program keeps of large blocks that it freed."""
    done = subprocess.run(
        (sys.executable, "-c", PROGRAM, *arguments), capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps them")
def test_large_blocks_are_not_kept() -> None:
    assert kept("yes") < LARGE // 2 < kept()
