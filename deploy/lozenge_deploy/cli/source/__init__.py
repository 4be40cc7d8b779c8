"""`lozenge source`: files into raw topics."""
