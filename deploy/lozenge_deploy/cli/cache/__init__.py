"""`lozenge cache`: what caches have of a key, and whether they have what their topics have."""
