"""`lozenge archive`, `lozenge sql`, `lozenge export`: the tables of topics."""
