"""Code shared by the ways to sign in."""
