"""Access tokens that people make: personal ones, and those of groups and projects."""
