"""Changes of alerts, told to the parts of the service that follow them."""
