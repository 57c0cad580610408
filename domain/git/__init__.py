"""Git repositories of projects: storage, access, reading and upkeep."""
