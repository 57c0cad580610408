"""Help texts of commands, and the reference that is generated from the commands."""
