"""What the service knows of a person: where it lies, handing it out, and erasing it."""
