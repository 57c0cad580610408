"""Fuzzes one target in this process; tests/fuzz/run.py starts it with the options of libFuzzer."""

import sys

import atheris

# Atheris only tracks branches of modules that are imported in this block.
with atheris.instrument_imports(include=["domain", "joserfc"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz the target that the first argument names."""
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
