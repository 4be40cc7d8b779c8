"""The control plane: deployment spec and status of every detector, in compacted topics."""
