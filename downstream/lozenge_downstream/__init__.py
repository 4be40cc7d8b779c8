"""The notifier: reads the alerts of every detector, decides once, and tells people and services."""
