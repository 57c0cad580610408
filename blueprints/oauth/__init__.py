"""The OAuth and OpenID Connect endpoints, and the pages on which users consent."""
