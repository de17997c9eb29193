"""Which of the parts that may be left out are deployed."""

import os
from collections.abc import Mapping

from rules.parts import ALL_PARTS, Part

PARTS = "PARTS"  # a variable of each function: `leads=true questions=false`


def deployed_parts(environ: Mapping[str, str] = os.environ) -> frozenset[Part]:
    """Return the parts that are deployed: all of them where nothing says otherwise.

    Raises ValueError for a name that is no part.
    """
    text = environ.get(PARTS)
    if text is None:
        return ALL_PARTS
    flags = dict(word.split("=", 1) for word in text.split())
    return frozenset(Part(name) for name, is_there in flags.items() if Part(name) and is_there == "true")
