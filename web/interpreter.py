"""Detection of Python interpreters that were built with profile-guided optimization (PGO).

`scripts/find-python` runs this file by its path, with interpreters that have none of our packages.
"""

import sys
import sysconfig
from platform import python_version


def is_interpreter_optimized() -> bool:
    """Return whether this Python appears to be built with profile-guided optimization.

    Debian and Ubuntu build their interpreters with it, but keep the flags out of `sysconfig`. Their
    packages have their own installation scheme. Fedora, Homebrew, python.org, the images of Docker,
    conda and uv show the option of `configure`.
    """
    if sysconfig.get_config_var("Py_DEBUG"):
        return False
    shown = map(sysconfig.get_config_var, ("CONFIG_ARGS", "PY_CFLAGS", "PY_CORE_CFLAGS"))
    words = " ".join(map(str, shown))
    has_option = "--enable-optimizations" in words or "-fprofile-use" in words
    return has_option or "deb_system" in sysconfig.get_scheme_names()


def describe_interpreter() -> str:
    """Return the version of this Python and how it was built."""
    built = "optimized" if is_interpreter_optimized() else "built without optimization"
    return f"{python_version()}, {built}"


if __name__ == "__main__":
    sys.stdout.write(f"{describe_interpreter()}\n")
    sys.exit(0 if is_interpreter_optimized() else 1)
