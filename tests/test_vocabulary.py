"""What users and newcomers read is in the field's words: `docs/glossary.md` has them.

Documents are checked as they are. Code is checked whole: identifiers (split into their words), docstrings, comments,
log events, errors, help and output of commands, metric help. A package is checked once it is in `CLEAN_CODE`.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import re2

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"

CLEAN_DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "detectors/*/README.md",
    "detectors/README.md",
)
"""Files, folders and patterns; a folder means its `.md`, `.yaml` and `.svg` files.

So the archived measurement records in `docs/measured` are not checked, which are JSON and what a terminal showed. Their
page is.
"""
CLEAN_CODE = (
    "shared/lozenge",
    "upstream/lozenge_upstream",
    "downstream/lozenge_downstream",
    "deploy/lozenge_deploy",
    "detectors",
    "examples",
    "tests",
    "Makefile",
    "pyproject.toml",
    "docker-compose.yml",
    "deploy/compose",
    "deploy/monitoring",
)
"""Source files and packages whose every word is checked."""
UNCHECKED_CODE = ("tests/test_vocabulary.py",)
"""Files and packages within `CLEAN_CODE` that are not checked: this file lists the words."""

ALLOWED: dict[str, str] = {"log.tell()": "Python's name for the position in a file"}
"""Exact phrases that are not checked, and why. An entry that no checked file contains any more must go."""

WORDS = {
    "tell": r"tell|tells|told|telling",
    "judge": r"judge|judges|judged|judging|judgement",
    "beside": r"beside",
    "whoever": r"whoever|whomever",
    "letterbox": r"letterbox",
    "letter": r"letters?",
    "young": r"young|younger|youngest",
    "mend": r"mend|mends|mended|mending",
    "bury": r"bury|buries|buried|burying",
    "wish": r"wish|wishes|wished",
    "anew": r"anew|afresh",
    "stands": r"stands|stand by|stood|standing",
    "parked": r"parked",
    "goes on": r"goes on|go on|went on|going on",
    "left out": r"left out|leaves out|leave out|leaving out",
    "left behind": r"left behind|leaves? behind|leaving behind",
    "at its boundary": r"at its boundary",
    "between two batches": r"between two batches",
    "calm": r"calm",
    "crew": r"crews?",
    "keeper": r"keepers?",
    "voice": r"voices?",
    "crossing": r"crossings?",
    "deposed": r"deposed",
    "the lead": r"(?:the|its) lead|agent leads|leads again|leads no longer",
    "happening": r"happenings?",
    "held back": r"held back|holds? back|holding back",
    "ill": r"ill|illness",
    "is asked for": r"asked for",
    "it is so already": r"it is so already",
    "occasion": r"occasions?",
    "once it is warm": r"once (?:it is|they are) warm",
    "pace": r"pace|paces|paced|pacing",
    "predecessor": r"predecessors?",
    "put aside": r"(?:puts?|sets?|left|leaves?|laid) aside",
    "reads back": r"reads? back|reading back",
    "rehearse": r"rehears\w*",
    "relieves": r"relieves?|relieved|relieving",
    "takes over from": r"takes? over|took over|taking over",
    "comes to rest": r"com(?:e|es|ing) to rest|came to rest",
    "the rest comes through": r"the rest comes through",
}
"""Of the glossary's "words that are not used" all that have no other meaning here: the word there, and its forms.

Not among them are words that are right in another sense: behind a proxy, in place, to fill a disk, a held lock, noise
of a measurement, the host of a JVM.
"""
FORMER_MODULES = """
    altering arrivals arriving asked batch_length behind blocking candidates catalogue committed continuity
    conventions counts covering crew crossings decision declaration deliver deploying desired diamond differences
    eligible facts fill fitness fleet fold_host folding forgetting gist guarantees harvest held history judgement
    keeper lane ledger letterbox letters lines live look machine members meter modes moves moving muting observed
    operate orders overview own_code pace parts peeking places planning promises raised read_back readable readings
    registry reloading repeating resolving restarts result rewind scratch share shipping snapshots spark_clock
    spark_positions standing starting stateless steps stopping table telling terms texts told tracing trial troubles
    turns user verdicts voice warm work world written
"""
"""Names of modules that did not say what was in them."""
PLATFORM = ("shared", "upstream/lozenge_upstream", "downstream", "deploy")
"""The code that runs any stream. Which fields there are is in the folders of streams."""
OF_ONE_DOMAIN = re.compile(r"card_id|keyed_by_card|merchant|mcc", re.IGNORECASE)
"""Words of the stream that this project happens to have."""
HAVE_A_DOMAIN = {
    "deploy/lozenge_deploy/demo": "the demo has a stream of its own, that of payments",
    "shared/lozenge/contracts/schemas/alert.v1.avsc": "its id is that of this text: a published schema never changes",
    "shared/lozenge/contracts/schemas/alert.v2.avsc": "as alert.v1.avsc",
}
"""Files and folders of the platform in which these words stay, and why."""
MEANT = r"\b(?:dead|upper-case|lower-case)[\s#/-]+letters?\b|\bthreshold[\s#]+crossings?\b"
"""Two words that are used, of which one is not used alone; they may be on two lines."""
_FORMS = [rf"(?P<w{i}>\b(?:{forms})\b)".replace(" ", r"\s+") for i, forms in enumerate(WORDS.values())]
# RE2 reads 6 MB of code in half a second; Python's own takes a minute, since it tries each of the forms at each letter
_PATTERN = re2.compile("(?i)" + "|".join([MEANT, *_FORMS]))
_TEXT = {".md", ".yaml", ".svg"}
_SOURCES = {".py", ".java", ".toml", ".tmpl", ".avsc", ".html", ".css", ".js", ".properties", ".xml", ".yml", ".patch"}


class Finding(NamedTuple):
    """A word that is not used, where it is, and what the glossary says for it."""

    where: str
    line: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f'{self.where}:{self.line}: "{self.found}": say {self.instead}'


@cache
def replacements() -> dict[str, str]:
    """What the glossary says for each of `WORDS`."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", _unused(GLOSSARY.read_text("utf-8"))[1], re.MULTILINE)
    cells = [(re.sub(r" \(.*?\)| alone", "", words), instead) for words, instead in rows]
    found = {word.strip(): instead for words, instead in cells for word in words.split(",")}
    missing = WORDS.keys() - found.keys()
    assert not missing, f"{GLOSSARY} does not say what to use for {sorted(missing)}"
    return {word: found[word] for word in WORDS}


def findings(text: str, where: str, *, code: bool) -> Iterator[Finding]:
    """Every use of one of `WORDS` in a text; in code also as a part of a name."""
    instead = list(replacements().values())
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    words = _split(text) if code else text
    for match in _PATTERN.finditer(words):
        if match.lastgroup is not None:  # else it is meant
            line = words.count("\n", 0, match.start()) + 1
            yield Finding(where, line, match.group(), instead[int(match.lastgroup[1:])])


def _split(text: str) -> str:
    """Names as words: `told_at` and `toldAt` are "told at"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text.replace("_", " "))


def _unused(glossary: str) -> tuple[str, str]:
    """The glossary before and behind the heading of the words that are not used."""
    above, heading, below = glossary.partition("## Words that are not used")
    assert heading, f"{GLOSSARY} has lost its table of words that are not used"
    return above, below


def _documents() -> Iterator[Path]:
    for pattern in CLEAN_DOCUMENTS:
        for path in sorted(ROOT.glob(pattern)):
            files = sorted(path.rglob("*")) if path.is_dir() else [path]
            yield from (file for file in files if file.suffix in _TEXT)


def _within(file: Path, names: Iterable[str]) -> bool:
    return any(file == ROOT / name or ROOT / name in file.parents for name in names)


def _sources() -> Iterator[Path]:
    for name in CLEAN_CODE:
        path = ROOT / name
        assert path.exists(), f"{name} in CLEAN_CODE is nowhere: name the folder to which it was moved"
        files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.suffix in _SOURCES]
        yield from (file for file in files if not _within(file, UNCHECKED_CODE))


def _text(file: Path) -> str:
    """What is checked of a file: of the glossary its terms."""
    text = file.read_text("utf-8")
    return _unused(text)[0] if file == GLOSSARY else text


def _report(found: list[Finding]) -> str:
    return "\n".join(
        [*map(str, found), "", "docs/glossary.md has the field's word for each; see CONTRIBUTING.md, Words."]
    )


def test_documents_use_the_words_of_the_field() -> None:
    files = list(_documents())
    assert len(files) >= 15  # the patterns still find them
    found = [f for file in files for f in findings(_text(file), str(file.relative_to(ROOT)), code=False)]
    assert not found, _report(found)


def test_clean_code_uses_the_words_of_the_field() -> None:
    found = [f for file in _sources() for f in findings(_text(file), str(file.relative_to(ROOT)), code=True)]
    assert not found, _report(found)


def test_the_platform_knows_nothing_of_one_stream() -> None:
    files = [file for name in PLATFORM for file in (ROOT / name).rglob("*") if file.suffix in _SOURCES | _TEXT]
    assert len(files) >= 300
    within = {file: next((name for name in HAVE_A_DOMAIN if _within(file, [name])), "") for file in files}
    found = {
        file: [
            f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, 1)
            if OF_ONE_DOMAIN.search(line)
        ]
        for file in files
        for lines in [file.read_text("utf-8").splitlines()]
    }
    wrong = [line for file, lines in found.items() if not within[file] for line in lines]
    assert not wrong, "\n".join(
        [*wrong, "", "the platform runs any stream: take the name from the stream's definition"]
    )
    unused = {*HAVE_A_DOMAIN} - {within[file] for file, lines in found.items() if lines}
    assert not unused, f"take these out of HAVE_A_DOMAIN, nothing of it has such a word any more: {sorted(unused)}"


def test_no_module_has_a_name_that_says_nothing() -> None:
    modules = [file for file in _sources() if file.suffix == ".py" and "tests" not in file.relative_to(ROOT).parts]
    assert len(modules) >= 300
    assert [str(file.relative_to(ROOT)) for file in modules if file.stem in FORMER_MODULES.split()] == []


def test_every_allowed_phrase_is_in_use() -> None:
    texts = [_text(file) for file in [*_documents(), *_sources()]]
    unused = [phrase for phrase in ALLOWED if not any(phrase in text for text in texts)]
    assert not unused, f"take these out of ALLOWED, no checked file has them any more: {unused}"


def test_the_glossary_is_in_alphabetical_order_and_complete() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", _unused(GLOSSARY.read_text("utf-8"))[0], re.MULTILINE)
    terms = [re.sub(r"[^a-z ]", "", term.lower()) for term, _, _ in rows[1:]]  # the first is the heading
    assert len(terms) >= 60
    assert terms == sorted(terms)


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        ("Whoever comes first, is told.", False, ["Whoever", "told"]),
        ("a job that stands by", False, ["stands"]),
        ("letters of upstream, a dead\n  letter, dead-letter topics, lower-case letters", False, ["letters"]),
        ("besides, the standby told_at", False, []),
        ("self.told_at = toldAt(JUDGED)", True, ["told", "told", "JUDGED"]),
        ("DEAD_LETTER_BYTES: dead_letters of DeadLetter", True, []),
        ("def stand_by(): ...", True, ["stand by"]),
        ("the time between\n  two batches", False, ["between\n  two batches"]),
        ("a threshold crossing, then crossings", False, ["crossings"]),
        ("E.PREDECESSOR_RUNS: readBack(left_behind)", True, ["PREDECESSOR", "read Back", "left behind"]),
    ],
)
def test_a_word_is_found_in_every_form(text: str, code: bool, found: list[str]) -> None:
    assert [finding.found for finding in findings(text, "here", code=code)] == found


def test_a_finding_says_where_it_is_and_what_to_say() -> None:
    [finding] = findings("first line\nprocess it anew", "docs/page.md", code=False)
    assert str(finding) == 'docs/page.md:2: "anew": say again; from scratch (`fresh` is the name of a state policy)'
