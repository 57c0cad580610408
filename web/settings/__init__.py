"""Settings: their table, how they are read, checked, changed and documented."""
