"""Actions of users and administrators on accounts."""
