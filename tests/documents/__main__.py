"""`make docs`: writes every generated part of `docs/` again."""

from tests.documents import cli, packages, platform, python_api, settings

PAGES = (cli.PAGE, packages.PAGE, python_api.PAGE, *settings.PAGES, *platform.PAGES)


def main() -> None:
    """Writes the pages and names them."""
    for page in PAGES:
        page.path.write_text(page.current(), "utf-8")
        print(page.name)


if __name__ == "__main__":
    main()
