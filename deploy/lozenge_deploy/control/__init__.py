"""The control plane: desired and observed state of every detector, in compacted topics."""
