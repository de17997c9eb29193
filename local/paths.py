"""The files of the laptop cloud, how its secrets are written, and how files of others are opened.

They are under .local/ in a checkout. The code of an installed command has a streakline.pth beside it
(pyproject.toml). Nothing is to be written there: the files are in ~/.streakline.
"""

import codecs
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
LOCAL = Path.home() / ".streakline" if ROOT.with_name("streakline.pth").exists() else ROOT / ".local"
STACK = LOCAL / "stack.json"
LOGS = LOCAL / "logs"
REPORT = LOCAL / "report.html"
WAREHOUSE = LOCAL / "warehouse.duckdb"
ASKED = LOCAL / "asked.txt"  # for which consumer somebody last began to wait, and when


def folder_id(folder: Path) -> list[int]:
    """Return numbers by which a folder differs from its copies; [] if there is no such folder.

    What a laptop cloud's folder says of processes and addresses is copied with it, and true of the first.
    """
    try:
        status = folder.stat()
    except FileNotFoundError:
        return []
    return [status.st_dev, status.st_ino]


def refuse_other_checkout() -> None:
    """Raise SystemExit if this is the code of one checkout, run in another: `cp -a` copies the .venv, too."""
    here = Path.cwd()
    for folder in (here, *here.parents) if LOCAL.parent == ROOT else ():
        own_code = folder / "local" / "paths.py"
        if own_code.exists() and not own_code.samefile(__file__):
            raise SystemExit(
                f"this streakline is that of {ROOT}, and would act on its laptop cloud: "
                f"`make setup` in {folder} installs its own"
            )


def write_secret(path: Path, secret: bytes) -> None:
    """Write a file that only this user can read, in one step: a kill leaves the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(secret)
    fresh.replace(path)


def opened_text(path: Path, newline: str = "") -> IO[str]:
    """Open a text that somebody else has written: UTF-8, or UTF-16 as spreadsheets export it, by its mark.

    Bytes that are no UTF-8 come as lone surrogates, so that they refuse their line alone.
    """
    with path.open("rb") as data:
        is_wide = data.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if is_wide:
        return path.open(newline=newline, encoding="utf-16", errors="replace")
    return path.open(newline=newline, encoding="utf-8-sig", errors="surrogateescape")
