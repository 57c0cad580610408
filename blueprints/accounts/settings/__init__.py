"""Pages for a user's own settings, under /-/user_settings."""
