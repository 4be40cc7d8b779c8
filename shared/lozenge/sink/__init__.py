"""The process that runs one sink: it reads topics and commits their records to tables, each exactly once."""
