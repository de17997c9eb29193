"""What a log may have of a person: a name that does not lead back to them, and nothing else (rule 10)."""

import hashlib

NAME_CHARACTERS = 16


class TellsNobody:
    """Marks an exception whose text holds nothing that somebody has sent, so that a log may have it."""


def name_in_logs(an_id: str) -> str:
    """Return the name under which logs have an id: whoever has the id finds the lines, but not the other way.

    It is a hash without a key: whoever has the log and a list of ids can compare them. So logs end by age.
    """
    text = f"log\x1f{an_id}".encode(errors="surrogatepass")
    return "~" + hashlib.sha256(text).hexdigest()[:NAME_CHARACTERS]
