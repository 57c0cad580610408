"""Pages for sign-in, a user's own settings, and other users."""
