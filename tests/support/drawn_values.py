"""Values that a test draws by chance: ids, texts of many languages, attributes that may be missing."""

import uuid
from random import Random
from typing import Any

Item = dict[str, Any]
WORDS = ("Größe 42", "名前", 'the "blue" one', "a\nb", "مرحبا", "plain", "C:\\temp", "x, y", "😀", "")


def new_id(chance: Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128)))


def some(chance: Random, share: float = 0.5, **values: Any) -> Item:
    """Return each of some attributes, or not."""
    return {name: value for name, value in values.items() if chance.random() < share}
