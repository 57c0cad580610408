"""Policies that actions obtain from their unit of work, in addition to settings.

See `web/services.py`.
"""
