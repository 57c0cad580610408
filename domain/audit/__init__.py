"""What happened that somebody may have to answer for: written down, read, and kept for a time."""
