"""The background worker and its jobs."""
