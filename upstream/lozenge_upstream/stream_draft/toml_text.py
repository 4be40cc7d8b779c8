"""Values as TOML writes them; files of a draft have comments, so they are written line by line."""

import json
import re
from datetime import datetime
from typing import Any


def toml_value(value: Any) -> str:
    """A value on one line: tables and lists inline. Raises TypeError for what TOML does not have."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # else TOML takes what JSON writes
        case int() | float():
            return repr(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            parts = (f"{toml_key(name)} = {toml_value(part)}" for name, part in value.items())
            return f"{{ {', '.join(parts)} }}" if value else "{}"
    raise TypeError(f"TOML has no {type(value).__name__}")


def toml_key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_block(text: str) -> str:
    """A text of one or more lines as it is, where TOML can have it so."""
    literal = "'''" not in text and not text.endswith("'") and re.fullmatch(r"[^\x00-\x08\x0b-\x1f\x7f]*", text)
    return f"'''\n{text}\n'''" if literal else toml_value(text)
