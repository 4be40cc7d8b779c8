"""The agent: keeps every detector running as its deployment spec says, and reports its status."""
