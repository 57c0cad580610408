"""Modules that all other packages use: errors, clock, encryption, database and field types."""
