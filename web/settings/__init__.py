"""Settings: their table, parsing, validation, changes and documentation."""
