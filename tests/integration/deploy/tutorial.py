"""Walks a tutorial: writes its files and runs its commands, as a reader would."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lozenge.kafka.settings import KafkaSettings
from tests.deploy.command import ROOT, invoke, surroundings

_USUAL = "127.0.0.1:9092"
"""The broker of `lozenge up`, which a tutorial's own programs name, as they name the raw topics."""
_RAW_TOPIC = r'produce\("(\w+)"'


class Tutorial:
    """`docs/<name>` in the new project `folder`, with the broker of a test instead of that of `lozenge up`."""

    def __init__(self, name: str, folder: Path, kafka: KafkaSettings) -> None:
        self.folder, self._kafka = folder, kafka
        self._text = (ROOT / "docs" / name).read_text("utf-8")
        self._variables = kafka.variables | {"LOZENGE_STREAMS": str(folder / "upstream" / "streams")}
        (folder / "detectors").mkdir(parents=True)
        (folder / "upstream" / "streams").mkdir(parents=True)
        (folder / "pyproject.toml").touch()
        for file, content in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", self._text, re.DOTALL):
            here = content.replace(_USUAL, kafka.bootstrap)
            here = re.sub(_RAW_TOPIC, lambda found: f'produce("{kafka.topics.prefixed(found[1])}"', here)
            (folder / file).write_text(here, "utf-8")

    @property
    def commands(self) -> Iterator[str]:
        """What a reader types, but for what starts, stops and finds the platform."""
        for command in re.findall(r"^\$ (.*?)(?: +#.*)?$", self._text, re.MULTILINE):
            if not re.match(r"export |lozenge (up|down)\b", command):
                yield command

    def run(self, command: str) -> str:
        """What it prints; it must end with 0."""
        words = re.sub(r' -m "[^"]*"', "", command).split()
        given = (self.folder / words.pop()).read_text("utf-8") if words[-2:-1] == ["<"] else None
        words = [self._kafka.topics.prefixed(w) if w.startswith("pay.") else w for w in words if w != "<"]
        if words[0] == "lozenge" and words[1] != "test" and given is None:  # tests of pytest need files as streams
            run = invoke(*words[1:], cwd=self.folder, **self._variables)
        else:
            program = ["-m", "lozenge_deploy.cli"] if words[0] == "lozenge" else []
            process = [sys.executable, *program, *words[1:]]
            around = surroundings(**self._variables)
            run = subprocess.run(process, cwd=self.folder, env=around, input=given, capture_output=True, text=True)
        assert run.returncode == 0, f"{command}: {run.stdout}{run.stderr}"
        return run.stdout
