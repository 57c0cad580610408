"""Fuzzes one target in this process; tests/fuzz/run.py starts it with the options of libFuzzer."""

import sys

import atheris

# Only what is imported in this block tells which of its branches an input takes.
with atheris.instrument_imports(include=["domain", "joserfc"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz the target that the first argument names."""
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
