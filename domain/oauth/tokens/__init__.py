"""Access and refresh tokens: issued, redeemed, presented, bound to keys, revoked."""
