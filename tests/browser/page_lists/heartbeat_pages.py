"""The pages of the heartbeats of a project."""

from tests.support.alerts.heartbeats import heartbeat
from tests.support.service.live import LiveGatebell


def heartbeat_pages(gatebell: LiveGatebell, path: str, text: str) -> list[str]:
    """Return the pages, with one that is down, one by cron's format and a new one."""
    line = "".join(filter(str.isprintable, text))
    options = ("--every", "1h", "--grace", "0s", "--description", text, "--environment", line)
    down = heartbeat(gatebell, *options, project=path, name=line[:100])
    down.ping("/start")
    down.ping("/7", method="POST", body=text.encode())
    cron = heartbeat(gatebell, "--cron", "30 3 * * 1-5", project=path, name="report")
    cron.ping()
    heartbeat(gatebell, project=path, name="new one")
    at = f"/{path}/-/heartbeats"
    return [at, f"{at}/new", f"{at}/{down.id}", f"{at}/{down.id}/edit", f"{at}/{cron.id}"]
