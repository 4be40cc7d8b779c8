"""The text form of a sample in a snapshot: `name{label=value,...}`, with `,`, `}` and `%` percent-encoded in values."""

import re
from collections.abc import Mapping
from urllib.parse import unquote

_SAMPLE = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-z_]+=[^,}]*)(,[a-z_]+=[^,}]*)*\})?")
_ENCODED = {ord(character): f"%{ord(character):02X}" for character in "%,}"}


def encode(name: str, labels: Mapping[str, str]) -> str:
    """The text form of a sample's name and labels, in the order of the label names."""
    pairs = (f"{label}={value.translate(_ENCODED)}" for label, value in sorted(labels.items()))
    return name + ("{" + ",".join(pairs) + "}" if labels else "")


def is_sample(text: str) -> bool:
    """Whether `text` is the text form of a sample; the bound of a bucket has to be a number."""
    if not _SAMPLE.fullmatch(text):
        return False
    try:
        float(decode(text)[1].get("le", "0"))
    except ValueError:
        return False
    return True


def decode(sample: str) -> tuple[str, dict[str, str]]:
    """The name and labels of a sample's text form."""
    name, _, rest = sample.partition("{")
    return name, {label: unquote(value) for label, value in re.findall(r"([a-z_]+)=([^,}]*)", rest)}
