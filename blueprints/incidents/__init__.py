"""The pages of incidents and of the rules that open them."""
