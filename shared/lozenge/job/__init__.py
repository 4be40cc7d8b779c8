"""The process that runs one detector: it reads events, processes them and commits each batch exactly once.

`lifecycle/job_loop` has the order of things. `drivers` run the query, `query` builds it, `operators` evaluate its
batches, and `commit` publishes the output and moves the offsets in one transaction.
"""
