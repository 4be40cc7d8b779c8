"""The Spark hosts of this machine: which detector runs on which, and when one is started, left and ended."""
