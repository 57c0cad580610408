"""OAuth and OpenID Connect on the wire, a request at a time."""
