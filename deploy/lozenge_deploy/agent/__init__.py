"""The agent: keeps every detector as it is desired, and says how it is."""
