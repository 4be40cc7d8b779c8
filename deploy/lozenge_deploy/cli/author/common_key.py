"""The key by which a command reads several streams together."""

from collections.abc import Sequence

from lozenge.errors import UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.merged import shared_keys


def common_key(doing: str, streams: Sequence[StreamDefinition], key: str) -> str:
    """`key` as it is given; of several streams without one the only key that all of them share.

    Raises UsageError with what to give by --key.
    """
    if len(streams) < 2:
        return key
    found, names = shared_keys(streams), " and ".join(each.name for each in streams)
    if key in found or (not key and len(found) == 1):
        return key or found[0]
    if not found:
        has = "; ".join(f"{each.name} has {', '.join(f'{k} in {f}' for k, f in each.keys.items())}" for each in streams)
        raise UsageError(
            f"{doing}: {names} share no key: {has}",
            hint="name the field of one entity alike in their schemas and in `keys` of both stream.toml; or read one",
        )
    what = f"{names} do not share the key {key}" if key else f"{names} can be read by several keys"
    raise UsageError(f"{doing}: {what}", hint=f"name the entity of the alerts: --key {' or --key '.join(found)}")
