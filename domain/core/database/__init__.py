"""SQL for both databases: locks, upserts, keyset pagination, statements without the ORM."""
