"""On-call reports, handoff notes and post-incident documents."""
