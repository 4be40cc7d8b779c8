"""Files that readers see whole: the old content or the new, never a part."""

import os
from pathlib import Path


def replace(file: Path, text: str) -> None:
    """Puts `text` in place of what `file` held; safe while others read it, and from several processes."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(text, "utf-8")
    new.replace(file)
