"""Pages of accounts: sign-in, own settings, and other users."""
