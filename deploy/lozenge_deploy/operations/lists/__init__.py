"""Reference lists: how people change them, and what they see of them."""
