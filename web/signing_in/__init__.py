"""What several ways to sign in share."""
