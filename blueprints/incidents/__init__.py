"""Pages for incidents and for the rules that open them."""
