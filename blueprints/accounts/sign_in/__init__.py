"""Pages for sign-in, the second factor, and sign-out."""
