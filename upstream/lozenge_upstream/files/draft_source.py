"""`python -m lozenge_upstream.files.draft_source FILE FORMAT`: the columns of a file, as `source.toml` declares them.

The answer is JSON: `columns` by name, and `rows`, 0 if the format does not say it before they are read. Exit codes: 0
answered, 1 failed, 2 it cannot be read.
"""

import json
import sys

from lozenge.errors import UsageError
from lozenge.file_sources.definition import Complete, FileSource, Format
from lozenge.process.standard_output import print_answer
from lozenge_upstream.files.copying import READERS
from lozenge_upstream.files.pieces import UnreadableFile
from lozenge_upstream.files.storage import Storage


def answer(file: str, format: Format, delimiter: str) -> str:
    """The JSON of what the file says of itself; raises UsageError."""
    base, _, name = file.rpartition("/")
    given = {"title": "draft", "owner": "draft", "topic": "draft", "name": "draft", "complete": Complete.RENAME}
    source = FileSource.model_validate({**given, "path": base or ".", "format": format, "delimiter": delimiter})
    try:
        with Storage(source).opened(name) as opened:
            layout = READERS[format].layout(opened, source)
    except FileNotFoundError as error:
        raise UsageError(f"reading {file}: it does not exist", hint="--from names a file, or one on s3://") from error
    except OSError as error:
        raise UsageError(f"reading {file}: {error.strerror or error}", hint="--from names a file to read") from error
    except UnreadableFile as error:
        raise UsageError(f"reading {file} as {format}: {error}", hint="--format names another one") from error
    return json.dumps({"columns": layout.columns, "rows": layout.rows}, ensure_ascii=False)


def main() -> int:
    """Answers, and returns the exit code."""
    file, format, delimiter = sys.argv[1:4]
    return print_answer(lambda: answer(file, Format(format), delimiter))


if __name__ == "__main__":
    sys.exit(main())
