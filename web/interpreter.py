"""Detection of Python interpreters that were built with profile-guided optimization (PGO).

`scripts/find-python` runs this file with interpreters in which no packages are installed.
"""

import sys
import sysconfig
from platform import python_version


def is_interpreter_optimized() -> bool:
    """Return whether this Python appears to be built with profile-guided optimization.

    Fedora, Homebrew, python.org, Docker images, conda and uv list the `configure` option in
    `sysconfig`. Debian and Ubuntu use the optimization without listing it. Their packages are
    recognized by their installation scheme.
    """
    if sysconfig.get_config_var("Py_DEBUG"):
        return False
    shown = map(sysconfig.get_config_var, ("CONFIG_ARGS", "PY_CFLAGS", "PY_CORE_CFLAGS"))
    words = " ".join(map(str, shown))
    has_option = "--enable-optimizations" in words or "-fprofile-use" in words
    return has_option or "deb_system" in sysconfig.get_scheme_names()


def describe_interpreter() -> str:
    """Return the version of this Python, and whether it was built with optimization."""
    built = "optimized" if is_interpreter_optimized() else "built without optimization"
    return f"{python_version()}, {built}"


if __name__ == "__main__":
    sys.stdout.write(f"{describe_interpreter()}\n")
    sys.exit(0 if is_interpreter_optimized() else 1)
