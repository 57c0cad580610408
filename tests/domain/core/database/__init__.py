"""Lists and their pages, without an app."""
