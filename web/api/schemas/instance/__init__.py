"""The instance itself: health, settings, and the audit log."""
