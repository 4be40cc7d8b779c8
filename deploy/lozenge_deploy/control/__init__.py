"""The control plane: what is wanted of every detector and what is so, in compacted topics."""
