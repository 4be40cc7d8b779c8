"""Which release of its stream an instance runs, and how another one comes into force while it runs."""
