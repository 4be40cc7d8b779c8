"""In the place of an environment's Python: `fake_python -m lozenge.host FOLDER ...` listens without Spark.

What it is to do is in `<folder of the hosts>/behaviour`: "ready", "dead" (ends at once) or "slow" (never listens).
"""

import os
import signal
import sys
import time
from pathlib import Path

from lozenge.host.address import HostAddress, publish

folder = Path(sys.argv[3])
behaviour = (folder.parent / "behaviour").read_text()
if behaviour == "dead":
    print('{"level": "error", "event": "no memory for a heap"}', flush=True)
    sys.exit(1)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if behaviour == "ready":
    publish(folder, HostAddress(os.getpid(), os.getpid(), 1, "secret"))
while True:
    time.sleep(0.05)
