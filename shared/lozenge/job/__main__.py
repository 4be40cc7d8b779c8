"""`python -m lozenge.job [NAME | FOLDER]`: runs the detector installed here, or the one in a source folder.

The settings of the start come from `LOZENGE_JOB_*`, the cluster from `LOZENGE_KAFKA_*`. On SIGTERM and SIGINT it stops
at a batch boundary with exit code 0, or after 20 s inside a batch with 124. Exit code 3 means that the broker is not
available, 4 that its Spark host is gone; 1 and 2 mean that an operator has to act.

Next to a Spark host it runs as a fork of a process that has all imports behind it, if that has the same packages.
"""

from lozenge.job.fork_client import run_forked

if __name__ == "__main__":
    run_forked()
    from lozenge.job.service import main
    from lozenge.process.shutdown import end

    end(main())
