"""SQL for both databases: locks, upserts, keyset pagination, and statements without the ORM."""
