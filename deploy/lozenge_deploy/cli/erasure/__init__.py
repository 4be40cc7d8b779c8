"""`lozenge erase`: one person out of every place."""
