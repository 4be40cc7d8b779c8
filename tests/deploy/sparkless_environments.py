"""Environments of rules whose job, backtest and backfill run without Spark; every other module is the real one.

They lie where the real ones would, under `LOZENGE_CACHE`. The command and the agent are the real ones: they find an
environment that is complete, and with `tested` a folder whose tests have passed.
"""

import shutil
import sys
from pathlib import Path

from lozenge.streams.folder import write_copy
from lozenge.toolchain import cache_path
from lozenge_deploy.releases.build import CHECKOUT, LIBRARY, Parts, parts_of
from lozenge_deploy.releases.environments import STREAMS
from lozenge_deploy.releases.test_run import proof_of
from lozenge_deploy.releases.uv import made_once

_CACHE = cache_path()
"""Where Spark's jars and archives are, whatever cache a test moves to later."""
_PYTHON = """\
#!/bin/sh
# The Python of a detector's environment: -m MODULE WHICH ..., or -c CODE with the detector installed.
# WHICH is the name of the detector, or a folder that ends with a slash.
sources="$(dirname "$0")/../source"
source="$sources/{name}/"
export LOZENGE_CACHE='{cache}'
if [ "$1" = -c ]; then
  PYTHONPATH="$sources" exec '{python}' "$@"
fi
module="$2"
case "$3" in */) source="$3" ;; esac
shift 3
case "$module" in
  lozenge.job) set -- tests.deploy.sparkless_job "$source" "$@" ;;
  lozenge.job.tools.back*|lozenge.job.tools.describe)
    set -- tests.deploy.sparkless_tool "${{module##*.}}" "$source" "$@" ;;
  *) exec '{python}' -m "$module" "$source" "$@" ;;
esac
PYTHONPATH='{checkout}' exec '{python}' -m "$@"
"""


def install(folder: Path, *, tested: bool = True) -> Path:
    """Makes the environment of the detector in `folder`, as it is now, one without Spark; where it lies.

    The detector's source, as it is now, is in it as `source/<name>`.
    """
    parts = parts_of(folder)
    home = cache_path("environments", f"{parts.detector}-{parts.digest}")
    made_once(home, lambda stage: _make(parts, folder, stage))
    if tested:
        proof_of(folder, home / "bin" / "python").touch()
    return home


def _make(parts: Parts, folder: Path, stage: Path) -> None:
    shutil.copytree(folder, stage / "source" / folder.name, ignore=shutil.ignore_patterns("test_*", "__pycache__"))
    write_copy(parts.stream, stage / STREAMS)
    (stage / "bin").mkdir()
    python = stage / "bin" / "python"
    python.write_text(_PYTHON.format(name=folder.name, cache=_CACHE, checkout=CHECKOUT, python=sys.executable))
    python.chmod(0o755)
    for name in (LIBRARY, parts.detector):
        info = stage / "lib" / "python3" / "site-packages" / f"{name.replace('-', '_')}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
