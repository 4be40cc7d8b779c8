"""What a detector joins on: declared files and lists, their versions, and how they are read."""
