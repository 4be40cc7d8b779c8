"""What a stream is: a folder of data with its schema, its keys, its mappings and its samples."""
