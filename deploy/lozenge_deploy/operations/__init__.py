"""Every change to the platform as a function with a dry run."""
