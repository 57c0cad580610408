"""Creates what an export of another on-call tool comes to."""
