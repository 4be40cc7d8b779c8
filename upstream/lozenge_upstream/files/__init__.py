"""Files into a raw topic: each row once, in the order of its file."""
