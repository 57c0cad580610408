"""Tests that lines to standard error are written immediately, or wait in order for a reader."""

import fcntl
import os
import pty
import re
import select
import socket
import subprocess
import sys
import termios
import tty
from _thread import _count as count_threads
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.service.live import ROOT
from web import nonblocking_output
from web.standard_streams import NonBlockingStream

_SECONDS = 60
_HEAD = """
import os, resource, signal, sys
from select import PIPE_BUF
if "gevent" in sys.argv:
    from gevent import monkey
    monkey.patch_all()
from web.standard_streams import (
    get_dropped_line_count, set_dropped_lines_description, unblock_standard_streams
)
if "another user" in sys.argv:
    os.setuid(65534)
unblock_standard_streams()
def say(name, number, size=100):
    sys.stderr.write(f"{name} {number} {'x' * size}\\n")
"""
_KINDS = ("pipe", "pipe, gevent", "pipe, another user", "socket", "terminal")


@dataclass
class Reader:
    """Represents a program's standard error, with the end that this process reads."""

    reading: int
    writing: int
    found: bytes = field(default=b"", init=False)

    def read(self, wanted: int) -> bytes:
        """Read at most this number of the bytes that are available."""
        try:
            piece = os.read(self.reading, wanted) if self.has_more(0) else b""
        except OSError:  # No process writes to the terminal any more.
            piece = b""
        self.found += piece
        return piece

    def has_more(self, seconds: float) -> bool:
        # Unlike select, poll accepts descriptors above 1023, which this process can have.
        poll = select.poll()
        poll.register(self.reading, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def lines_until(self, words: str) -> list[str]:
        """Read until a line begins with these words, and return all lines."""
        deadline = monotonic() + _SECONDS
        wanted = f"\n{words}".encode()
        while b"\n" not in (b"\n" + self.found).partition(wanted)[2]:
            assert monotonic() < deadline, self.found[-2000:]
            if self.has_more(0.1):
                self.read(65_536)
        return self.found.decode().splitlines()


@pytest.fixture
def reader(request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Open standard error of the parametrized kind, or a pipe."""
    kind = getattr(request, "param", "pipe")
    if kind == "socket":
        ends = [each.detach() for each in socket.socketpair()]
    elif kind == "terminal":
        ends = list(pty.openpty())
        tty.setraw(ends[1])
    else:
        ends = list(os.pipe())
    made = Reader(*ends)
    yield made
    os.close(made.reading)
    os.close(made.writing)


@contextmanager
def program(
    code: str, output: int, *words: str, says: int | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run code with standard error at a descriptor, and kill it if it does not end."""
    command = [sys.executable, "-c", _HEAD + code, *words]
    passed = () if says is None else (says,)
    process = subprocess.Popen(command, cwd=ROOT, stderr=output, stdout=output, pass_fds=passed)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def words_of(kind: str) -> list[str]:
    if "another user" in kind and os.geteuid():
        pytest.skip("only root can become another user")
    if "another user" in kind and not pipes_know_the_flag():
        pytest.skip("Linux before 6.4 has no write to a pipe that does not wait")
    return kind.split(", ")[1:]


def pipes_know_the_flag() -> bool:
    ends = os.pipe()
    try:
        return os.pwritev(ends[1], (b"x",), -1, os.RWF_NOWAIT) == 1
    except OSError:
        return False
    finally:
        for each in ends:
            os.close(each)


of_each_kind = pytest.mark.parametrize(
    ("reader", "kind"),
    [(each.split(", ", maxsplit=1)[0], each) for each in _KINDS],
    indirect=["reader"],
)


@of_each_kind
def test_a_killed_process_loses_no_lines(reader: Reader, kind: str) -> None:
    code = """
for number in range(30):
    say("line", number)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with program(code, reader.writing, *words_of(kind)) as killed:
        killed.wait(_SECONDS)
    while reader.read(65_536):
        pass
    assert [int(line.split()[1]) for line in reader.found.decode().splitlines()] == list(range(30))


def test_a_killed_process_loses_no_lines_of_a_file(tmp_path: Path) -> None:
    code = """
for number in range(1000):
    say("line", number)
os.kill(os.getpid(), signal.SIGKILL)
"""
    log = tmp_path / "log"
    log.write_text("what was there before\n")
    with log.open("a") as file, program(code, file.fileno()) as killed:
        killed.wait(_SECONDS)
    first, *lines = log.read_text().splitlines()
    assert first == "what was there before"
    assert [int(line.split()[1]) for line in lines] == list(range(1000))


@of_each_kind
def test_a_paused_reader_does_not_block_the_program_and_gets_all_lines_in_order(
    reader: Reader, kind: str
) -> None:
    code = """
for number in range(3000):
    say("line", number, 6000 if number % 100 == 99 and number > 1000 else 200)
os.write(int(sys.argv[1]), b"done")
say("the", "last")
"""
    done, says = os.pipe()
    with program(code, reader.writing, str(says), *words_of(kind), says=says) as writer:
        os.close(says)
        assert wait([done], _SECONDS), "the program waits for its reader"
        assert os.read(done, 4) == b"done"
        os.close(done)
        lines = reader.lines_until("the last")
        assert writer.wait(_SECONDS) == 0
    assert [line.split()[1] for line in lines[:-1]] == [str(number) for number in range(3000)]
    assert {len(line.split()[2]) for line in lines[1099:-1:100]} == {6000}


@pytest.mark.parametrize("reader", ["terminal"], indirect=True)
def test_a_stopped_terminal_does_not_block_the_program(reader: Reader) -> None:
    code = """
import termios
say("before", 0)
termios.tcflow(2, termios.TCOOFF)
for number in range(100):
    say("stopped", number)
os.write(int(sys.argv[1]), b"done")
sys.stdin.read()
"""
    done, says = os.pipe()
    with program(code, reader.writing, str(says), says=says) as writer:
        os.close(says)
        assert wait([done], _SECONDS), "the program waits for its terminal"
        os.close(done)
        termios.tcflow(reader.writing, termios.TCOON)
        lines = reader.lines_until("stopped 99")
        assert writer.wait(_SECONDS) == 0
    assert [line.split()[1] for line in lines] == ["0", *map(str, range(100))]


def test_long_lines_of_several_processes_are_not_mixed(reader: Reader) -> None:
    code = """
children = []
for name in "abcd":
    if not (child := os.fork()):
        for number in range(60):
            sys.stderr.write(f"<{name * (9000 if number % 3 else 50)}>\\n")
        for stream in (sys.stdout, sys.stderr):
            stream.wait_until_written(60)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
say("the", "last")
"""
    with program(code, reader.writing) as writer:
        *lines, _ = reader.lines_until("the last")
        assert writer.wait(_SECONDS) == 0
    assert [line for line in lines if not re.fullmatch(r"<(a+|b+|c+|d+)>", line)] == []
    assert len(lines) == 4 * 60


def test_output_of_a_signal_handler_is_a_separate_line(reader: Reader) -> None:
    code = """
import itertools
numbers = itertools.count()
signal.signal(signal.SIGUSR1, lambda *_: say("handler", next(numbers), 3000))
write = os.write
def write_and_interrupt(descriptor, text):
    written = write(descriptor, text)
    if bytes(text[:4]) == b"main":
        signal.raise_signal(signal.SIGUSR1)
    return written
os.write = write_and_interrupt
for number in range(20):
    say("main", number, 100_000)
    sys.stderr.wait_until_written(60)
say("the", "last", 0)
"""
    with program(code, reader.writing) as writer:
        *lines, _ = reader.lines_until("the last")
        assert writer.wait(_SECONDS) == 0
    sizes = {"main": "x" * 100_000, "handler": "x" * 3000}
    parts = [line.split() for line in lines]
    assert all(sizes[name] == text for name, _, text in parts)
    for name in sizes:
        numbers = [int(number) for each, number, _ in parts if each == name]
        assert numbers == list(range(20))


def test_a_partly_written_line_is_completed_before_other_lines(reader: Reader) -> None:
    first, second = (nonblocking_output.open_output(reader.writing) for _ in range(2))
    line = b"x" * 200_000 + b"\n"
    written = first.write_without_waiting(line)
    assert 0 < written < len(line)
    while reader.read(65_536):
        pass
    with pytest.raises(BlockingIOError):
        second.write_without_waiting(b"short\n")
    with ThreadPoolExecutor(1) as thread:
        rest = thread.submit(first.write_text, line[written:])
        reader.lines_until("x")
        assert rest.result() == len(line) - written
    assert second.write_without_waiting(b"short\n") == 6
    reader.lines_until("short")
    assert reader.found == line + b"short\n"
    for each in (first, second):
        each.close_descriptors()


def test_lines_are_counted_as_dropped_after_the_reader_closes() -> None:
    reading, writing = os.pipe()
    code = """
say("line", 0)
os.read(int(sys.argv[1]), 1)
for number in range(100):
    say("line", number)
sys.stderr.wait_until_written(60)
assert get_dropped_line_count() == 100, get_dropped_line_count()
sys.stdout.write("never read\\n")
"""
    gone, tells = os.pipe()
    with program(code, writing, str(gone), says=gone) as writer:
        assert os.read(reading, 4096).startswith(b"line 0 ")
        os.close(reading)
        os.write(tells, b"!")
        assert writer.wait(_SECONDS) == 0
    for each in (writing, gone, tells):
        os.close(each)


def test_the_number_of_lost_lines_is_logged_after_a_full_disk(tmp_path: Path) -> None:
    code = """
set_dropped_lines_description("missing {}".format)
limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
for number in range(20):
    say("line", number, 90)
sys.stderr.wait_until_written(60)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
say("later", 0)
say("later", 1)
"""
    log = tmp_path / "log"
    with log.open("a") as file, program(code, file.fileno()) as writer:
        assert writer.wait(_SECONDS) == 0
    lines = log.read_text().splitlines()
    whole = [line for line in lines if re.fullmatch(r"line \d+ x{90}", line)]
    assert [line.split()[1] for line in whole] == [str(number) for number in range(len(whole))]
    cut, *rest = lines[len(whole) :]
    assert cut.startswith(f"line {len(whole)} x")
    assert rest[0] == f"missing {20 - len(whole)}"
    assert [line.split()[:2] for line in rest[1:]] == [["later", "0"], ["later", "1"]]


def test_a_thread_writes_lines_after_a_slow_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("ab") as file:
        stream = NonBlockingStream(file.fileno())
        threads = count_threads()
        stream.write("fast\n")
        assert count_threads() == threads
        monkeypatch.setattr(nonblocking_output, "_SLOW_WRITE_SECONDS", -1)
        for line in ("slow\n", "by the thread\n", "and this one\n"):
            stream.write(line)
        stream.wait_until_written(_SECONDS)
        assert count_threads() == threads + 1
    written = (tmp_path / "log").read_text()
    assert written == "fast\nslow\nby the thread\nand this one\n"


@pytest.fixture(scope="module")
def small_pipe() -> Iterator[tuple[Reader, NonBlockingStream]]:
    """Open a pipe with space for two lines, and a stream that writes to it."""
    made = Reader(*os.pipe())
    fcntl.fcntl(made.writing, fcntl.F_SETPIPE_SZ, 8192)
    yield made, NonBlockingStream(made.writing)
    os.close(made.reading)
    os.close(made.writing)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.sampled_from((0, 1, 50, 3000, 4096, 5000, 20_000))),
            st.tuples(st.just("read"), st.sampled_from((1, 100, 4096, 65_536))),
        ),
        max_size=40,
    )
)
def test_lines_stay_in_order_for_any_sequence_of_reads_and_writes(
    small_pipe: tuple[Reader, NonBlockingStream], steps: list[tuple[str, int]]
) -> None:
    reader, stream = small_pipe
    written, found = "", b""
    for number, (step, size) in enumerate(steps):
        if step == "read":
            found += reader.read(size)
        else:
            line = f"{number} {'x' * size}\n"
            written += line
            assert stream.write(line) == len(line)
    deadline = monotonic() + _SECONDS
    while len(found) < len(written):
        assert monotonic() < deadline
        found += reader.read(65_536)
    stream.wait_until_written(_SECONDS)
    assert not reader.has_more(0)
    assert found.decode() == written
    assert stream.dropped_lines == 0
