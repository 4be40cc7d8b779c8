"""The words of `--with`."""

import pytest

from lozenge.errors import UsageError
from lozenge.sink_declarations.project import sink_named
from lozenge_deploy.demo.sinks.extras import SINKS, Extra, extras
from lozenge_deploy.releases.build import CHECKOUT


def test_words_have_commas_between_them_and_each_counts_once() -> None:
    assert extras("") == ()
    assert extras(" files, cache, archive,cache,") == (Extra.ARCHIVE, Extra.CACHE, Extra.FILES)


def test_every_unknown_word_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="there is no archives, tables") as raised:
        extras("tables,cache,archives")
    assert raised.value.hint == "name some of archive, cache, files"


@pytest.mark.parametrize("extra", SINKS)
def test_each_is_a_sink_of_this_project(extra: Extra) -> None:
    assert sink_named(CHECKOUT, SINKS[extra]).kind == extra
