"""`lozenge list`: the commands on reference lists."""
