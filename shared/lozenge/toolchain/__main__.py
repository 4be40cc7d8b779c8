"""`python -m lozenge.toolchain`: installs what Spark needs in addition to Python and prints where it is.

With `java` it only prints the Java home; with `lock` it rewrites `jars.sha256` from `ivy.xml`.
"""

import argparse
import sys

from lozenge.errors import ToolchainError
from lozenge.toolchain import jars
from lozenge.toolchain.cds import spark_archive
from lozenge.toolchain.java import find_java, java_home


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lozenge.toolchain", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["install", "java", "lock"], default="install")
    try:
        match parser.parse_args().what:
            case "java":
                print(java_home())
            case "lock":
                jars.lock()
            case _:
                _install()
    except ToolchainError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _install() -> None:
    java = find_java()
    print(f"Java {java.version} from {java.origin}: {java.home}")
    print(f"JVM jars: {jars.install()}")
    print(f"class-data archive: {spark_archive().make() or 'could not be made; every start takes a little longer'}")


if __name__ == "__main__":
    sys.exit(main())
