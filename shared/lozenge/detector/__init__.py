"""What a detector is: its definition, its fold, its manifest, and how it is found and loaded."""
