"""The device authorization grant (RFC 8628): requests and user codes."""
