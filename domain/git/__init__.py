"""Git repositories of projects: storage, access, browsing and maintenance."""
