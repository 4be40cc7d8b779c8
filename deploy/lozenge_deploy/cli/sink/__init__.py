"""`lozenge sink`, and what commands have in common that release sinks and tables of the platform."""
