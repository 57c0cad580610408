"""Policies beyond settings that actions can get from their unit of work (`web/services.py`)."""
