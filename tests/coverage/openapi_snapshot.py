"""Stores the OpenAPI document in tests/support/wire/openapi.json."""

import sys
from tempfile import TemporaryDirectory

from app import create_app
from tests.support.wire.openapi import (
    EXAMPLE_URL,
    STORED_AT,
    format_document,
    list_changed_requirements,
)
from web.api.openapi.openapi_document import InstanceDetails, build_openapi_document
from web.settings.environment import parse_settings


def main() -> None:
    """Store the document, and print which operations other callers can call now."""
    with TemporaryDirectory() as folder:
        settings = parse_settings({"INSTANCE_PATH": folder, "SECRET_KEY": "0" * 64})
        details = InstanceDetails(
            base_url=EXAMPLE_URL, instance_name=settings.instance_name, release=settings.release
        )
        document = build_openapi_document(create_app(settings), details)
    if STORED_AT.exists():
        for line in list_changed_requirements(document):
            sys.stderr.write(f"Access changed: {line}\n")
    STORED_AT.write_text(f"{format_document(document)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
