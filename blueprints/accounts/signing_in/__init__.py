"""Sign in, second factor, sign out."""
