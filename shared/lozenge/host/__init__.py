"""A warm JVM that several processes share, each with a gateway and a session of its own."""
