"""Compiles a folder for Lambda to .pyc files, which Python trusts without looking at the source.

Lambda's file system is read-only, so without these files every cold start compiles everything again. Only the
Python version that runs on Lambda can make them. Another version makes none.
LAYER_COMPILED names a folder that keeps compiled files for later builds: most files are the same in all
layers.
"""

import compileall
import hashlib
import importlib.util
import os
import py_compile
import shutil
import sys
import tempfile
from pathlib import Path
from py_compile import PycInvalidationMode

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
MODE = PycInvalidationMode.UNCHECKED_HASH


def main(folder: str, wanted: str, cache: str) -> None:
    """Compile, if this interpreter has the wanted version; else say that there are no .pyc files.

    cache: the folder that keeps compiled files; "": none does.
    """
    if wanted != HERE:
        print(f"no .pyc files: this is Python {HERE}, the function runs on {wanted}", file=sys.stderr)
    elif cache:
        Path(cache).mkdir(parents=True, exist_ok=True)
        for path in Path(folder).rglob("*.py"):
            _compile_file(path, str(path.relative_to(folder)), Path(cache))
    else:
        compileall.compile_dir(folder, quiet=1, workers=2, stripdir=folder, invalidation_mode=MODE)


def _compile_file(path: Path, name: str, cache: Path) -> None:
    """Put a file's compiled form beside it, and into the cache. name: what tracebacks call the file."""
    source = path.read_bytes()
    cached = cache / hashlib.sha256(f"{sys.version}\0{name}\0".encode() + source).hexdigest()
    if not cached.exists():
        with tempfile.TemporaryDirectory(dir=cache) as fresh:  # several builds run at once
            compiled = py_compile.compile(str(path), f"{fresh}/compiled", name, invalidation_mode=MODE)
            if compiled is None:  # it does not compile, and py_compile has printed why
                return
            Path(compiled).replace(cached)
    target = Path(importlib.util.cache_from_source(str(path)))
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(cached, target)


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LAYER_PYTHON", "3.13"), os.environ.get("LAYER_COMPILED", ""))
