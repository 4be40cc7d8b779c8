"""Every metric's name, and how metrics travel."""
