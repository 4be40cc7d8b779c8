"""An import does nothing: it reads no file, starts nothing, counts nowhere and sets up no logging."""

import json
import subprocess
import sys

import pytest

PROBE = """
import json, logging, sys, threading
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

package, root = sys.argv[1], str(Path(sys.argv[2]))
done = set()

def watch(event, args):
    if event == "open" and isinstance(args[0], str) and args[0].startswith(root):
        if not args[0].endswith((".py", ".pyc")) and "/.venv/" not in args[0]:
            done.add(f"opens {args[0]}")
    elif event in ("subprocess.Popen", "socket.connect", "os.fork", "signal.signal"):
        done.add(event)

def error(name):
    raise ImportError(name)

top = import_module(package)
sys.addaudithook(watch)
for found in walk_packages(top.__path__, package + ".", error):
    if not found.name.rpartition(".")[2] in ("__main__", "env", "setup"):
        before = threading.active_count(), list(logging.getLogger().handlers)
        import_module(found.name)
        if (threading.active_count(), list(logging.getLogger().handlers)) != before:
            done.add(f"{found.name} starts a thread or sets up logging")
from prometheus_client import REGISTRY
registered = REGISTRY._collector_to_names.values()
done |= {f"registers {name}" for names in registered for name in names if name.startswith("lozenge")}
print(json.dumps([len(sys.modules), sorted(done)]))
"""


@pytest.mark.parametrize("package", ["lozenge", "lozenge_upstream", "lozenge_downstream", "lozenge_deploy"])
def test_an_import_does_nothing(package: str, pytestconfig: pytest.Config) -> None:
    command = [sys.executable, "-B", "-c", PROBE, package, str(pytestconfig.rootpath)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    loaded, done = json.loads(run.stdout)
    assert loaded > 100
    assert done == []
