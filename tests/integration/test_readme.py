"""The README's code is what the project runs."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_detector_in_the_readme_passes_its_tests(tmp_path: Path) -> None:
    folder = tmp_path / "night_cash"
    folder.mkdir()
    blocks = re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert {name for name, _ in blocks} == {"night_cash.py", "pyproject.toml", "test_night_cash.py"}
    for name, text in blocks:
        (folder / name).write_text(text, "utf-8")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


def test_the_consumer_in_the_readme_is_the_example() -> None:
    [shown] = re.findall(r"<!-- include: examples/consume_notifications.py -->\n```python\n(.*?)```", README, re.DOTALL)
    assert shown == (ROOT / "examples" / "consume_notifications.py").read_text("utf-8")


def test_every_verb_that_the_readme_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    verbs = set(re.findall(r"make ([a-z-]+)", README)) | set(
        re.findall(r"make ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    )
    assert {verb for verb in verbs if f"\n{verb}:" not in makefile} == set()
