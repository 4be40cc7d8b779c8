"""What every process needs: settings from the environment, logging, signals, files replaced as a whole."""
