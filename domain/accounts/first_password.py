"""The file with the password of the first administrator, which is there until it is changed."""

from pathlib import Path

FIRST_USERNAME = "admin"
_FILE_NAME = "first_administrator.txt"


def first_password_file(instance_path: Path) -> Path:
    """Return where the file is."""
    return instance_path / _FILE_NAME


def has_first_password(username: str, instance_path: Path) -> bool:
    """Return whether this is the first administrator with the generated password."""
    return username == FIRST_USERNAME and first_password_file(instance_path).exists()


def forget_first_password(username: str, instance_path: Path) -> None:
    """Remove the file after the password was changed."""
    if username == FIRST_USERNAME:
        first_password_file(instance_path).unlink(missing_ok=True)
