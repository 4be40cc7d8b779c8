"""The running queries: raw topics in, canonical topics out, exactly once."""
