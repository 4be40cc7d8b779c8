"""The routing file that `docs/notifications.md` shows is valid, and its examples hold."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "notifications.md"


def test_the_routing_file_in_the_documents_is_valid(tmp_path: Path) -> None:
    [shown] = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    file = tmp_path / "routing.toml"
    file.write_text(shown, "utf-8")
    command = [sys.executable, "-m", "lozenge_downstream.routing", "test", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
