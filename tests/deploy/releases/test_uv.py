"""What a person reads when uv fails."""

from pathlib import Path

import pytest

from lozenge.errors import ToolchainError
from lozenge_deploy.releases import uv

OF_A_BUILD = """Building wheel...
Traceback (most recent call last):
  File "<string>", line 11, in <module>
  File "back/end.py", line 58, in build_wheel
    raise ValueError(message)
    ^^^^^^^^^^^^^^^^^^^^^^^^^
{error}
error: Failed to build `x`
  cause: The build backend returned an error
"""


@pytest.mark.parametrize("error", ["ValueError: no version", "TOMLDecodeError: Invalid\n(at line 1)"])
def test_of_a_build_the_back_end_s_own_error_remains(error: str) -> None:
    assert uv.words(OF_A_BUILD.format(error=error)) == error


@pytest.mark.parametrize(
    "output",
    [
        "error: No solution found when resolving dependencies\n  cause: Because a was not found",
        "Building wheel...\nerror: Failed to build `x`\n  cause: The build backend returned an error",
        "",
    ],
)
def test_other_output_of_uv_remains_whole(output: str) -> None:
    assert uv.words(output) == output


def test_a_package_that_no_index_has_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "required.in").write_text("fraudlib==1.0\n")
    with pytest.raises(ToolchainError, match=r"locking: [^-]*fraudlib") as refused:
        uv.uv("locking", "pip", "compile", "--offline", "--no-index", str(tmp_path / "required.in"))
    assert "UV_FIND_LINKS" in refused.value.hint
