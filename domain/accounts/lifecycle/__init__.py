"""What people and administrators do to accounts."""
