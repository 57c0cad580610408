"""Starts the service of the checkout in the working directory, for `bench.costs.pairs`.

The measuring process runs this file by path, with any interpreter and in any checkout. Therefore
the imports below come from that checkout. The script prints one line of JSON when the service
responds, and stops the service when its standard input ends.
"""

import json
import sys
from pathlib import Path

from bench.gatebell import running_gatebell
from bench.seed_counts import Counts
from bench.shots import Shot


def main() -> None:
    """Run the service until standard input ends."""
    given = json.loads(sys.stdin.readline())
    directory, url = Path(given["directory"]), given["database_url"]
    with running_gatebell(directory, url, Counts(**given["counts"])) as running:
        ready = {
            "pid": running.live.pid,
            "port": running.live.port,
            "shots": {str(work): _describe_shot(shot) for work, shot in running.shots.items()},
        }
        sys.stdout.write(f"{json.dumps(ready)}\n")
        sys.stdout.flush()
        sys.stdin.read()


def _describe_shot(shot: Shot) -> dict[str, object]:
    return {
        "method": shot.method,
        "path": shot.path,
        "headers": dict(shot.headers),
        "body": shot.body,
        "mode": str(shot.mode),
        "values": list(shot.values.every),
        "expected": {str(status): list(texts) for status, texts in shot.expected.items()},
    }


if __name__ == "__main__":
    main()
