"""The routing file: who is told about which alerts, when, and together with what."""
