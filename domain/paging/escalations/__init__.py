"""Who is paged for an alert and when: policies, routes to them, and escalations under way."""
