"""Compiles a folder for Lambda to .pyc files, which Python trusts without looking at the source.

Lambda's file system is read-only, so without these files every cold start compiles everything again. Only the
Python version that runs on Lambda can make them. Another version makes none.
"""

import compileall
import os
import sys
from py_compile import PycInvalidationMode

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def main(folder: str, wanted: str) -> None:
    """Compile, if this interpreter has the wanted version; else say that there are no .pyc files."""
    if wanted != HERE:
        print(f"no .pyc files: this is Python {HERE}, the function runs on {wanted}", file=sys.stderr)
        return
    compileall.compile_dir(
        folder, quiet=1, workers=2, stripdir=folder, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LAYER_PYTHON", "3.13"))
