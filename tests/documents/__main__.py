"""`make docs`: writes every generated part of `docs/` again."""

from tests.documents import cli


def main() -> None:
    """Writes the pages and names them."""
    cli.PAGE.write_text(cli.page(), "utf-8")
    print(cli.PAGE.relative_to(cli.ROOT))


if __name__ == "__main__":
    main()
