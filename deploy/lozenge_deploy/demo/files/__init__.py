"""The file source of a demo: payments that come in files, and how they are compared with the records of the topic."""
