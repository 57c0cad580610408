"""Fuzzes parsers with atheris: `python -m tests.fuzz.run --minutes 60`, or one by its name.

Each target gets an equal part of the time and its own process. New inputs are stored in
build/fuzz/. An input that makes a parser fail is stored in tests/fuzz/corpus/, and `make test`
replays it from then on, with or without atheris.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
_GROWN = Path("build") / "fuzz"
_LONGEST_BYTES = 8192
_ONE_INPUT_SECONDS = 10


def main() -> None:
    """Fuzz all targets one after the other; the status is 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--target", choices=TARGETS)
    given = parser.parse_args()
    chosen = [given.target] if given.target else list(TARGETS)
    seconds = max(1, int(given.minutes * 60 / len(chosen)))
    failed = [name for name in chosen if _fuzz(name, seconds)]
    for name in failed:
        sys.stderr.write(f"{name}: see the new file in {CORPUS / name}\n")
    sys.exit(bool(failed))


def _fuzz(name: str, seconds: int) -> int:
    for folder in (_GROWN / name, CORPUS / name):
        folder.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"{name}, for {seconds} s\n")
    sys.stdout.flush()
    command = [
        *(sys.executable, "-m", "tests.fuzz.one", name),
        *(f"-max_total_time={seconds}", f"-max_len={_LONGEST_BYTES}"),
        *(f"-timeout={_ONE_INPUT_SECONDS}", f"-artifact_prefix={CORPUS / name}/"),
        *("-print_final_stats=1", "-verbosity=0"),
        # Atheris writes new inputs to the first folder and only reads the others.
        *(str(_GROWN / name), str(CORPUS / name)),
    ]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    main()
