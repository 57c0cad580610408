"""Helpers for templates and for lists on pages."""
