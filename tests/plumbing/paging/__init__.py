"""Pages: gathered, sent, retried."""
