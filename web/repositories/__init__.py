"""Git over HTTPS: children of Git's own http-backend, their number and their streams."""
