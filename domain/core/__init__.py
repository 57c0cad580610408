"""Modules that every other package uses: errors, clock, encryption, database, field types."""
