"""Every change to a deployment as a function with a dry run."""
