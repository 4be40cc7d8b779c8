import pytest

from lozenge.process.text_files import bad_byte, line_of, text_in, trimmed


@pytest.mark.parametrize("content", [b"a = 1\n", b"\xef\xbb\xbfa = 1\n"], ids=["plain", "with a mark"])
def test_a_byte_order_mark_is_no_part_of_a_text(content: bytes) -> None:
    assert text_in(content) == "a = 1\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a mark"])
def test_a_byte_of_another_encoding_is_named_with_its_line(mark: bytes) -> None:
    with pytest.raises(UnicodeDecodeError) as raised:
        text_in(mark + "eins\nzwei\nfünf".encode("latin-1"))
    assert (line_of(raised.value), bad_byte(raised.value)) == (3, "line 3 has the byte 0xfc")


@pytest.mark.parametrize("around", ["{}", "{}\n", "\ufeff{}", " {}\r\n", "\ufeff {} \n"])
def test_what_tools_put_around_a_value_is_removed(around: str) -> None:
    assert trimmed(around.format("a b")) == "a b"
