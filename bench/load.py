"""Loads a server with wrk, after a check of a single response."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from bench.constant_rate import open_connection
from bench.samples import CannotMeasureError, NoResponseError, Run, Sample
from bench.shots import COUNT_PLACEHOLDER, VALUE_PLACEHOLDER, Shot, ValueMode

CONNECTIONS = 8
THREADS = 2
_RESPONSE_TIMEOUT_SECONDS = 60
_SCRIPT = Path(__file__).parent / "wrk" / "load.lua"
_RESULT_MARK = "LOADED "


def find_wrk() -> str:
    """Return the path of wrk.

    Raise SystemExit with installation instructions if it is missing.
    """
    found = shutil.which("wrk")
    if found is None:
        raise SystemExit("wrk is not installed. Debian and Ubuntu have it: apt install wrk")
    return found


class LoadTarget:
    """A request to a running server, which is sent as often as the server can answer it."""

    def __init__(
        self,
        shot: Shot,
        *,
        port: int,
        scheme: str = "http",
        connections: int = CONNECTIONS,
        threads: int = THREADS,
        pause_ms: int = 0,
    ) -> None:
        """Store the request and the load; `pause_ms` is the pause after each response."""
        self._shot = shot
        self._url = f"{scheme}://127.0.0.1:{port}"
        self._connections = connections
        self._threads = threads
        self._pause_ms = pause_ms

    def measure(self, run: Run) -> Sample:
        """Load the server for the duration of a run."""
        values = self._shot.values_for(run.seconds)
        if self._shot.mode not in {ValueMode.SAME, ValueMode.COUNT} and not values:
            raise CannotMeasureError("all prepared values are used up")
        with TemporaryDirectory(prefix="gatebell-load-") as directory:
            plan = self._write_plan(Path(directory), values, run)
            return _build_sample(self._run_wrk(plan, run.seconds))

    def probe(self, number: int) -> None:
        """Send one request.

        Raise CannotMeasureError if the response is wrong.
        """
        shot = self._shot
        value = (
            f"{number:05d}{COUNT_PLACEHOLDER[5:]}"
            if shot.mode is ValueMode.COUNT
            else self._one_value()
        )
        headers = {
            name: text.replace(VALUE_PLACEHOLDER, value) for name, text in shot.headers.items()
        }
        connection = open_connection(self._url, timeout=_RESPONSE_TIMEOUT_SECONDS)
        try:
            path, body = (
                shot.path.replace(VALUE_PLACEHOLDER, value),
                shot.body.replace(VALUE_PLACEHOLDER, value).encode(),
            )
            connection.request(shot.method, path, body or None, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            if not shot.is_right(answer.status, text):
                raise CannotMeasureError(f"{shot.method} {shot.path}: {answer.status} {text[:300]}")
        except (OSError, HTTPException) as error:
            raise CannotMeasureError(f"no response: {error!r}") from error
        finally:
            connection.close()

    def _one_value(self) -> str:
        shot = self._shot
        values = shot.values.every if shot.mode is ValueMode.ROTATE else shot.values.take(1)
        return values[0] if values else ""

    def _write_plan(self, directory: Path, values: Sequence[str], run: Run) -> Path:
        shot, pool = self._shot, directory / "values"
        pool.write_text("".join(f"{value}\n" for value in values), encoding="ascii")
        sample = COUNT_PLACEHOLDER if shot.mode is ValueMode.COUNT else next(iter(values), "")
        plan = directory / "plan.lua"
        lines = {
            "mode": _format_lua_string(shot.mode),
            "looks": "true" if shot.looks else "false",
            "run": str(run.number),
            "threads": str(self._threads),
            "answers": str(run.answers),
            "pause": str(self._pause_ms),
            "values": _format_lua_string(str(pool) if values else ""),
            "parts": _format_lua_list(shot.parts(urlsplit(self._url).netloc, sample)),
            "expected": _format_lua_table(shot.expected),
            "successor": _format_lua_string(shot.successor),
        }
        table = "".join(f"  {name} = {value},\n" for name, value in lines.items())
        plan.write_text(f"return {{\n{table}}}\n", encoding="ascii")
        return plan

    def _run_wrk(self, plan: Path, seconds: int) -> dict[str, Any]:
        crowd = (f"-t{self._threads}", f"-c{self._connections}")
        options = (*crowd, f"-d{seconds}s", "--timeout", "30s")
        done = subprocess.run(
            [find_wrk(), *options, "--script", _SCRIPT, f"{self._url}/"],
            env={"LOAD_PLAN": str(plan)},
            capture_output=True,
            text=True,
            timeout=seconds + _RESPONSE_TIMEOUT_SECONDS,
            check=False,
        )
        for line in done.stdout.splitlines():
            if line.startswith(_RESULT_MARK):
                loaded: dict[str, Any] = json.loads(line.removeprefix(_RESULT_MARK))
                return loaded
        raise CannotMeasureError(f"wrk: {done.stdout[-300:]} {done.stderr[-300:]}")


def _build_sample(loaded: dict[str, Any]) -> Sample:
    errors = loaded["wrong"] + loaded["broken"]
    if not loaded["right"] + errors:
        raise NoResponseError("no response within the run; try a longer run")
    return Sample(
        rate=loaded["right"] / loaded["seconds"],
        p50=loaded["p50"],
        p95=loaded["p95"],
        p99=loaded["p99"],
        right=loaded["right"],
        errors=errors,
        statuses=loaded["statuses"],
    )


def _format_lua_string(text: str) -> str:
    """Write a text as a Lua string, with each byte as a number."""
    return '"' + "".join(f"\\{byte:03d}" for byte in text.encode()) + '"'


def _format_lua_list(texts: Sequence[str]) -> str:
    return "{" + ", ".join(map(_format_lua_string, texts)) + "}"


def _format_lua_table(expected: Mapping[int, Sequence[str]]) -> str:
    return (
        "{"
        + ", ".join(f"[{key}] = {_format_lua_list(texts)}" for key, texts in expected.items())
        + "}"
    )
