"""The patches that remove guards fit the sources; `make mutants` shows that each turns its test red."""

import pytest

from tests.mutations import ROOT, Guard, guards


@pytest.mark.parametrize("guard", guards(), ids=lambda guard: guard.name)
def test_the_patch_of_a_guard_applies_and_its_test_is_there(guard: Guard) -> None:
    assert guard.apply(ROOT, only_look=True) == "", f"make the patch again: {guard.patch.name}"
    file, _, name = guard.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text("utf-8")
