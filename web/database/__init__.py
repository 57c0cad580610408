"""Connections to SQLite and Postgres, and the database schema."""
