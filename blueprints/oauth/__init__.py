"""OAuth and OpenID Connect endpoints, and the consent pages."""
