"""What goes through topics: their names, schemas and byte forms, without any client."""
