"""Backups of an installation: the database, files of the instance, and Git repositories."""
