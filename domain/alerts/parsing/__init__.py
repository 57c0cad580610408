"""Parsers that convert payloads of all formats to alerts in a common form, without a database."""
