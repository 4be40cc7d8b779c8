"""Tables of the platform: what is loaded of them, and what people see of that."""
