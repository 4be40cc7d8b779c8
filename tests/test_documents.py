"""Decision records in docs/adr: unique numbers, a known form, links that resolve, and an index that equals them."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORDS = sorted((ROOT / "docs" / "adr").glob("*.md"))
INDEX = ROOT / "DECISIONS.md"
MAX_LINES = 60
SECTIONS = ["Context", "Decision", "Consequences", "Rejected"]
SUPERSEDED = re.compile(r"superseded by (\d{4})")
# area -> its numbers; from 0120 on, any area continues
AREAS = {
    "contracts": range(1, 10),
    "job": range(10, 20),
    "state": range(20, 30),
    "realtime": range(30, 40),
    "upstream": range(40, 50),
    "notifier": range(50, 70),
    "releases": range(70, 80),
    "deployment": range(80, 90),
    "observability": range(90, 100),
    "tests": range(100, 110),
    "toolchain": range(110, 120),
}
SHARED_NUMBERS = 120


@dataclass(frozen=True)
class Record:
    """One decision record, read from its file."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def number(self) -> str:
        return self.path.name[:4]

    @cached_property
    def front_matter(self) -> dict[str, str]:
        _, head, _ = self.text.split("---\n", 2)
        return {key: value.strip() for key, value in (line.split(":", 1) for line in head.splitlines())}

    @property
    def title(self) -> str:
        found = re.search(rf"^# {self.number}\. (.+)$", self.text, re.MULTILINE)
        assert found, f"{self.path.name} has no heading '# {self.number}. Title'"
        return found[1]

    @property
    def successor(self) -> "Record | None":
        found = SUPERSEDED.fullmatch(self.front_matter["status"])
        return _record(found[1]) if found else None

    def links(self) -> set[Path]:
        """Files that this record links to."""
        targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", self.text)
        return {(self.path.parent / target).resolve() for target in targets if "://" not in target}

    def row(self) -> str:
        """The line of this record in the index."""
        status = self.front_matter["status"]
        if self.successor:
            status = f"superseded by {_linked(self.successor)}"
        return f"| {_linked(self)} | {self.title} | {status} | {self.front_matter['area']} |"


def _linked(record: Record) -> str:
    return f"[{record.number}]({record.path.relative_to(ROOT)})"


def _record(number: str) -> Record:
    found = [path for path in RECORDS if path.name.startswith(number)]
    assert len(found) == 1, f"record {number} is in {len(found)} files: {[path.name for path in found]}"
    return Record(found[0])


every_record = pytest.mark.parametrize("record", [Record(path) for path in RECORDS], ids=lambda record: record.number)


def test_the_folder_of_records_is_found() -> None:
    assert RECORDS


@every_record
def test_a_record_has_a_unique_number_and_the_known_form(record: Record) -> None:
    assert re.fullmatch(r"\d{4}(-[a-z0-9]+)+\.md", record.path.name), "expected NNNN-short-title.md"
    assert _record(record.number) == record
    assert set(record.front_matter) == {"status", "area", "date"}
    assert record.front_matter["status"] == "accepted" or record.successor
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", record.front_matter["date"])
    assert record.title
    assert re.findall(r"^## (.+)$", record.text, re.MULTILINE) == SECTIONS
    bodies = re.split(r"^## .+$", record.text, flags=re.MULTILINE)[1:]
    assert all(body.strip() for body in bodies), "a section is empty"
    lines = len(record.text.splitlines())
    assert lines <= MAX_LINES, f"{lines} lines; split the decision, or move measurements to docs/benchmarks.md"


@every_record
def test_a_record_has_a_number_of_its_area(record: Record) -> None:
    number, area = int(record.number), record.front_matter["area"]
    assert area in AREAS
    assert number in AREAS[area] or number >= SHARED_NUMBERS


@every_record
def test_a_superseded_record_and_its_successor_link_to_each_other(record: Record) -> None:
    if successor := record.successor:
        assert successor.path in record.links()
        assert record.path in successor.links()


@every_record
def test_links_of_a_record_resolve(record: Record) -> None:
    assert [str(target) for target in record.links() if not target.exists()] == []


def test_the_index_equals_the_records() -> None:
    rows = [line for line in INDEX.read_text().splitlines() if line.startswith("| [")]
    assert rows == [Record(path).row() for path in RECORDS]
