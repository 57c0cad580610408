"""One module a payload format; each turns a body into the same frozen values."""
