"""An environment of its own for each Python peer: what its lock in `requirements` names, and nothing of ours.

`make lock` writes the locks again, from the files `*.in` next to them.
"""

import hashlib
import sys
from pathlib import Path

from lozenge.errors import ToolchainError
from lozenge.toolchain import cache_path
from lozenge_deploy.releases import uv
from lozenge_deploy.releases.build import BUILD_CONSTRAINTS
from tests.bench.harness.system import Unavailable

LOCKS = Path(__file__).with_name("requirements")


def python(peer: str) -> Path:
    """The Python of a peer; makes its environment once. Raises Unavailable with uv's words."""
    lock = LOCKS / f"{peer}.txt"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = cache_path("bench", f"{peer}-{sys.version_info.major}.{sys.version_info.minor}-{digest}")

    def make(stage: Path) -> None:
        doing = f"making the environment of {peer}"
        print(f"{doing} (once)", file=sys.stderr)
        uv.uv(doing, "venv", "--relocatable", "--python", sys.executable, str(stage))
        into = ("--python", str(stage / "bin" / "python"))
        hashes = ("--require-hashes", "--build-constraints", str(BUILD_CONSTRAINTS))
        uv.uv_offline_first(doing, "pip", "install", *into, *hashes, "-r", str(lock))

    try:
        return uv.made_once(home, make) / "bin" / "python"
    except ToolchainError as error:
        raise Unavailable(error.message) from error
