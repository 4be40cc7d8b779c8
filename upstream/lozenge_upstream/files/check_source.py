"""`python -m lozenge_upstream.files.check_source NAME`: whether the files of a source are as it declares, as JSON.

The answer is a list: of each file that is complete its size, its rows if the format says them, and its problem or "".
At most `MOST` files are opened, the newest. Exit codes: 0 answered, 1 failed, 2 the declaration is wrong.
"""

import json
import sys
import time
from typing import Any

from lozenge.errors import UsageError
from lozenge.file_sources.definition import FileSource, drift
from lozenge.file_sources.folder import read, sources_folder
from lozenge.process.standard_output import print_answer
from lozenge_upstream.files.copying import READERS
from lozenge_upstream.files.pieces import UnreadableFile
from lozenge_upstream.files.storage import FoundFile, Storage

MOST = 20


def answer(source: FileSource) -> str:
    """The JSON of the files; raises UsageError if their folder cannot be listed."""
    storage = Storage(source)
    try:
        found = storage.complete(time.time_ns())
    except OSError as error:
        raise UsageError(
            f"looking for files in {source.path}: {error.strerror or error}", hint="make the folder, or change path"
        ) from error
    return json.dumps([_checked(storage, source, file) for file in found[-MOST:]], ensure_ascii=False)


def _checked(storage: Storage, source: FileSource, file: FoundFile) -> dict[str, Any]:
    rows, problem = 0, ""
    try:
        with storage.opened(file.path) as opened:
            layout = READERS[source.format].layout(opened, source)
            rows = layout.rows
            if source.columns:
                problem = "; ".join(drift(source.columns, layout.columns))
    except (OSError, UnreadableFile) as error:
        problem = str(error)
    return {"file": file.path, "bytes": file.id.size, "rows": rows or None, "problem": problem}


def main() -> int:
    """Answers, and returns the exit code."""
    return print_answer(lambda: answer(read(sources_folder() / sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
