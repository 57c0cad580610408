"""Parsers that convert payloads of all formats to the same immutable alerts, without a database."""
