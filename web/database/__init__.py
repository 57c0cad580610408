"""Connections to SQLite and Postgres, and the schema."""
