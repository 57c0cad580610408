"""What pages, API and commands do with webhooks of projects."""
