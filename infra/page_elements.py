"""Bundles the clients' custom elements for our own page: `make clients` writes page/elements.js.

The bundle is committed, so a deployment needs no node. It begins with the digest of the sources that it was
made from. The gate compares this digest, without node; `make test` bundles anew and compares the text.
"""

import hashlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
NODE = ROOT / "client" / "typescript"
ENTRY = "src/elements/index.ts"
BUNDLE = ROOT / "page" / "elements.js"
MARK = "// Made by `make clients` from client/typescript/src/elements with the digest "
BUNDLE_SECONDS_MAX = 60


def sources() -> list[Path]:
    """Return the files that the bundle is made from."""
    # moment.ts is the only file outside of the elements' folder whose code they import.
    return [*sorted((NODE / "src" / "elements").glob("*.ts")), NODE / "src" / "moment.ts"]


def digest(files: list[Path]) -> str:
    """Return the digest of files, by name and content, in hexadecimal."""
    hashed = hashlib.sha256()
    for path in files:
        hashed.update(f"{path.name}\0{path.read_text()}\0".encode())
    return hashed.hexdigest()


def digest_in(path: Path) -> str:
    """Return the digest that a bundle was made from; "" if it names none."""
    return path.read_text().partition(MARK)[2][:64]


def minified_elements() -> str:
    """Return the elements as one module; needs node, and the packages of client/typescript."""
    options = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--charset=utf8")
    command = [str(NODE / "node_modules" / ".bin" / "esbuild"), ENTRY, *options]
    bundled = subprocess.run(  # noqa: S603 (our own tool)
        command, cwd=NODE, check=True, capture_output=True, text=True, timeout=BUNDLE_SECONDS_MAX
    )
    return bundled.stdout


def bundle() -> str:
    """Return the text of page/elements.js."""
    return f"{MARK}{digest(sources())}.\n{minified_elements()}"


if __name__ == "__main__":
    BUNDLE.write_text(bundle())
