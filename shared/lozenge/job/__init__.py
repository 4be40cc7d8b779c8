"""The process that runs one detector: read, detect, write and commit, exactly once.

Start at `runner` for the order of things; `positions` and `transaction` hold the guarantee, `source`
and `output` the two ends, `fold_host` and `crossings` the state, `poison` what happens to bad records.
"""
