"""What Java class files define and refer to, read from jars without a JVM."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import ZipFile

Member = tuple[str, str]
"""Name and descriptor of a method or field."""
_JDK = ("java/", "javax/", "jdk/", "sun/", "org/ietf/jgss/", "[")
_FIELD, _METHOD, _INTERFACE_METHOD = 9, 10, 11
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of a constant by its tag; text, tag 1, brings its own length."""


@dataclass(frozen=True)
class ClassFile:
    """A class: its parents, the members that it defines, and the members of others that it refers to."""

    name: str
    parents: tuple[str, ...]
    members: frozenset[Member]
    references: frozenset[tuple[str, Member]]


class ClassPath:
    """The classes of some jars; of one that is in several, the first.

    Classes of the JDK are taken to define whatever is requested.
    """

    def __init__(self, jars: Sequence[Path]) -> None:
        self._archives = [ZipFile(jar) for jar in jars]
        self._holders: dict[str, ZipFile] = {}
        for archive in self._archives:
            for name in archive.namelist():
                if name.endswith(".class"):
                    self._holders.setdefault(name.removesuffix(".class"), archive)
        self.find = cache(self._find)

    def close(self) -> None:
        """Closes the jars."""
        for archive in self._archives:
            archive.close()

    def of(self, jar: Path) -> Iterator[ClassFile]:
        """Every class of one of the jars."""
        archive = next(each for each in self._archives if each.filename == str(jar))
        for name in archive.namelist():
            if name.endswith(".class") and not name.startswith("META-INF/"):
                yield parse(archive.read(name))

    def defines(self, owner: str, member: Member) -> bool:
        """Whether a class has a member or inherits it."""
        found = self.find(owner)
        if found is None:
            return owner.startswith(_JDK)
        return member in found.members or any(self.defines(parent, member) for parent in found.parents)

    def _find(self, name: str) -> ClassFile | None:
        archive = self._holders.get(name)
        return parse(archive.read(f"{name}.class")) if archive is not None else None


def parse(data: bytes) -> ClassFile:
    """Reads a class file as the Java Virtual Machine Specification, chapter 4, defines it."""
    (count,) = struct.unpack_from(">H", data, 8)
    constants: dict[int, tuple[int, bytes]] = {}
    at, index = 10, 1
    while index < count:
        tag = data[at]
        size = 2 + struct.unpack_from(">H", data, at + 1)[0] if tag == 1 else _SIZES[tag]
        constants[index] = tag, data[at + 1 : at + 1 + size]
        at += 1 + size
        index += 2 if tag in (5, 6) else 1  # long and double take two numbers

    def text(number: int) -> str:
        return constants[number][1][2:].decode("utf-8", "surrogatepass")

    def named(number: int) -> str:
        return text(struct.unpack(">H", constants[number][1])[0]) if number else ""

    def member(number: int) -> Member:
        name, descriptor = struct.unpack(">HH", constants[number][1])
        return text(name), text(descriptor)

    references = set()
    for tag, content in constants.values():
        if tag in (_FIELD, _METHOD, _INTERFACE_METHOD):
            owner, what = struct.unpack(">HH", content)
            references.add((named(owner), member(what)))
    _access, this, parent, interfaces = struct.unpack_from(">HHHH", data, at)
    at += 8
    parents = [named(parent), *(named(n) for n in struct.unpack_from(f">{interfaces}H", data, at))]
    at += 2 * interfaces
    members = set()
    for _kind in ("fields", "methods"):
        (number,) = struct.unpack_from(">H", data, at)
        at += 2
        for _ in range(number):
            _access, name, descriptor, attributes = struct.unpack_from(">HHHH", data, at)
            at += 8
            members.add((text(name), text(descriptor)))
            for _ in range(attributes):
                at += 6 + struct.unpack_from(">I", data, at + 2)[0]
    return ClassFile(named(this), tuple(filter(None, parents)), frozenset(members), frozenset(references))
