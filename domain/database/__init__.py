"""What SQL needs on either database: locks, upserts, keyset pages, statements without the ORM."""
