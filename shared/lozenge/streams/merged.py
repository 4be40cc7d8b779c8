"""Several streams as one: a definition that any process takes for that of a stream, composed of theirs and one key.

Its topic carries the records of every stream that upstream merges by that key, each as it is in the topic of its
stream. The order of events across streams is the order of that topic.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, pairwise

from lozenge.contracts.topics import Topic, Topics, kept_for
from lozenge.errors import ConfigError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import field_at
from lozenge.streams.union_schema import conflicts, union


def merged(members: Sequence[StreamDefinition], key: str) -> StreamDefinition:
    """The events of `members` by one key; raises ConfigError with everything in which they do not fit together.

    A field that several have is one field. What one of them lacks is null in its events.
    """
    names = [each.name for each in members]
    if wrong := list(_problems(members, key)):
        raise ConfigError(
            f"reading the streams {' and '.join(names)} together: {len(wrong)} problem(s)",
            problems=wrong,
            hint="change what is named in one of the streams, or read one stream",
        )
    return StreamDefinition(
        name="+".join(names),
        title=" and ".join(each.title for each in members),
        owner=", ".join(dict.fromkeys(each.owner for each in members)),
        keys={key: members[0].keys[key]},
        tokens={field: word for each in members for field, word in each.tokens.items()},
        retention=min(each.retention for each in members),
        future_cap=max(each.future_cap for each in members),
        avro=union([(each.name, each.avro) for each in members]),
        members=tuple(members),
    )


def merged_topics(topics: Topics, streams: Sequence[StreamDefinition], keys: Collection[str]) -> list[Topic]:
    """The merged topics by `keys` of those of `streams` that have them; a topic keeps what any of these keeps."""
    kept = {key: [each.retention for each in streams if key in each.keys] for key in keys}
    return [
        Topic(topics.merged(key), topics.partitions, kept_for(max(retentions)))
        for key, retentions in sorted(kept.items())
        if retentions
    ]


def common_keys(stream: StreamDefinition, streams: Sequence[StreamDefinition]) -> tuple[str, ...]:
    """The keys that another one of `streams` has in the same field: by which a detector can read both."""
    others = {item for each in streams if each.name != stream.name for item in each.keys.items()}
    return tuple(key for key, field in stream.keys.items() if (key, field) in others)


def shared_keys(members: Sequence[StreamDefinition]) -> list[str]:
    """The keys by which all of `members` can be read together: each has them, in the same field."""
    first, *others = members
    return [key for key, field in first.keys.items() if all(each.keys.get(key) == field for each in others)]


def _problems(members: Sequence[StreamDefinition], key: str) -> Iterator[str]:
    names = [each.name for each in members]
    yield from (f"{name} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1)
    having = [each for each in members if key in each.keys]
    if not key:
        found = ", ".join(shared_keys(members))
        yield f"no key is named: take one of {found}" if found else "no key is named, and none is in all of them"
    for each in members:
        if key and each not in having:
            yield f"{each.name} has no key {key}, only {', '.join(each.keys)}"
    for one, other in pairwise(having):
        if (mine := one.keys[key]) != (theirs := other.keys[key]):
            fields = f"the field {mine} in {one.name} and {theirs} in {other.name}"
            yield f"the key {key} is {fields}: name both fields alike"
    yield from conflicts([(each.name, each.avro) for each in members])
    yield from _other_tokens(members)


def _other_tokens(members: Sequence[StreamDefinition]) -> Iterator[str]:
    """Fields whose values never equal each other: a token in one stream, and another or none in the next."""
    for one, other in combinations(members, 2):
        named = {name for each in (one, other) for name in each.tokens}
        for name in sorted(name for name in named if all(field_at(each.fields, name) for each in (one, other))):
            words = [each.tokens.get(name) for each in (one, other)]
            if words[0] != words[1]:
                mine, theirs = (f"a token of {word}" if word else "no token" for word in words)
                yield f"{name} is {mine} in {one.name} and {theirs} in {other.name}: they never equal each other"
