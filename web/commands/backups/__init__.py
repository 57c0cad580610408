"""Backups of an installation: the database, the instance's files and Git repositories."""
