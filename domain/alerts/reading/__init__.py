"""Reads payloads: each format's body becomes the same frozen alerts, without a database."""
