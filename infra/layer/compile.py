"""Compiles a folder for Lambda: .pyc files that are trusted without a look at the source.

Lambda's file system is read-only, so without them every cold start compiles everything again.
They must come from the Python that will run them; another one's are of no use and are left out.
"""

import compileall
import os
import sys
from py_compile import PycInvalidationMode

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def main(folder: str, wanted: str) -> None:
    """Compile for this interpreter's version, or say that it is another."""
    if wanted != HERE:
        print(f"no .pyc files: this is Python {HERE}, the function runs on {wanted}", file=sys.stderr)
        return
    compileall.compile_dir(
        folder, quiet=1, workers=2, stripdir=folder, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LAYER_PYTHON", "3.13"))
