"""`python upstream_child.py FILE`: runs upstream and kills it inside its first transaction once FILE is there.

Records and offsets are written then, and not committed.
"""

import os
import signal
import sys
from pathlib import Path

from lozenge.process.shutdown import end
from lozenge_upstream.__main__ import main
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer

commit = TransactionalProducer.commit


def dying(producer: TransactionalProducer) -> None:
    if Path(sys.argv[1]).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    commit(producer)


if __name__ == "__main__":
    TransactionalProducer.commit = dying  # type: ignore[method-assign, assignment]
    end(main())
