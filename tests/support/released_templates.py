"""The templates of the last release, in one file: tests/infra/test_updates.py compares today's with them.

`make released` stores today's, which is a part of a release.
"""

import json
import lzma
from pathlib import Path

from tests.support.template import ROOT

FILE = ROOT / "tests" / "infra" / "released.json.xz"
PATHS = ("template.yaml", "infra/*.yaml")


def store() -> None:
    """Store the templates as they are now."""
    files = sorted(path for pattern in PATHS for path in ROOT.glob(pattern))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    FILE.write_bytes(lzma.compress(json.dumps(texts).encode(), preset=9))


def unpack(folder: Path) -> Path:
    """Write the stored templates below a folder, and return the path of the root's."""
    for path, text in json.loads(lzma.decompress(FILE.read_bytes())).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder / "template.yaml"


if __name__ == "__main__":
    store()
