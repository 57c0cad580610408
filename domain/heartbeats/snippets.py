"""Snippets for jobs that send pings to a heartbeat."""

from dataclasses import dataclass

from domain.heartbeats.states import HeartbeatSchedule


@dataclass(frozen=True, kw_only=True)
class PingSnippet:
    """A text to paste. The title describes where to paste it."""

    title: str
    text: str


def build_ping_snippets(url: str, schedule: HeartbeatSchedule) -> tuple[PingSnippet, ...]:
    """Return the snippets for jobs, with the URL filled in."""
    return (
        _build_shell_snippet(url),
        _build_crontab_snippet(url, schedule),
        _build_systemd_snippet(url),
        _build_python_snippet(url),
    )


def _build_shell_snippet(url: str) -> PingSnippet:
    return PingSnippet(
        title="Shell: with the output and the exit status of the job",
        text=(
            f"url={url}\n"
            'curl -fsS -m 10 --retry 5 -o /dev/null "$url/start"\n'
            "output=$(/path/to/job 2>&1)\n"
            "status=$?\n"
            'printf %s "$output" | tail -c 9000 |\n'
            '  curl -fsS -m 10 --retry 5 -o /dev/null --data-binary @- "$url/$status"\n'
        ),
    )


def _build_crontab_snippet(url: str, schedule: HeartbeatSchedule) -> PingSnippet:
    when = schedule.cron or "*/5 * * * *"
    return PingSnippet(
        title="crontab",
        text=(f"{when} /path/to/job; curl -fsS -m 10 --retry 5 -o /dev/null {url}/$?\n"),
    )


def _build_systemd_snippet(url: str) -> PingSnippet:
    return PingSnippet(
        title="systemd: in the service that a timer starts",
        text=(
            "[Service]\n"
            "Type=oneshot\n"
            f"ExecStartPre=-/usr/bin/curl -fsS -m 10 --retry 5 -o /dev/null {url}/start\n"
            "ExecStart=/path/to/job\n"
            'ExecStopPost=-/bin/sh -c \'[ "$$SERVICE_RESULT" = success ] && s= || s=/fail; '
            f"exec /usr/bin/curl -fsS -m 10 --retry 5 -o /dev/null {url}$$s'\n"
        ),
    )


def _build_python_snippet(url: str) -> PingSnippet:
    return PingSnippet(
        title="Python: standard library only",
        text=(
            "import urllib.request\n\n"
            f'URL = "{url}"\n\n\n'
            'def ping(signal="", log=None):\n'
            "    urllib.request.urlopen(URL + signal, data=log, timeout=10)\n\n\n"
            'ping("/start")\n'
            "try:\n"
            "    ...  # the job\n"
            "except Exception as error:\n"
            '    ping("/fail", str(error).encode())\n'
            "    raise\n"
            "ping()\n"
        ),
    )
