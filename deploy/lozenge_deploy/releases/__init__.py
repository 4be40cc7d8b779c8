"""From a detector's folder to a numbered release and its environment."""
