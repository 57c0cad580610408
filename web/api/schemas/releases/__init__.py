"""The release schedule, checks against it, and rehearsals."""
