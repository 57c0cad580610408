"""A user's own settings, under /-/user_settings."""
