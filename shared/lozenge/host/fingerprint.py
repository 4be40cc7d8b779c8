"""`python -m lozenge.host.fingerprint`: prints the fingerprint of the Spark of this environment.

A client and a host fit together if their fingerprints are equal: the same protocol, PySpark, connector jars, flags of
the JVM and settings of a session.
"""

import hashlib
import json
from importlib.metadata import version

from lozenge.spark.conf import digest as conf_digest
from lozenge.toolchain import jars

_PROTOCOL = 3


def fingerprint() -> str:
    """Twelve characters."""
    known = [_PROTOCOL, version("pyspark"), conf_digest(), jars.folder().name]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:12]


if __name__ == "__main__":
    print(fingerprint())
