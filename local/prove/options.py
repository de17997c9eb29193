"""The options of `streakline prove`, `check-proof` and `audit`."""

import argparse
from pathlib import Path


def prove(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline prove`."""
    parser.add_argument("--user", required=True, metavar="ID")
    parser.add_argument(
        "--entry", default="", metavar="ID", help="an entry's id or seq; the newest with a root"
    )
    parser.add_argument("--out", type=Path, default=Path("proof.json"), help="where to write it: proof.json")


def check(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline check-proof`."""
    parser.add_argument("file", type=Path)
    parser.add_argument("--root", required=True, help="as it was announced: 64 hexadecimal digits")


def audit(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline audit`."""
    parser.add_argument(
        "--user", action="append", default=[], metavar="ID", help="these alone; all if left out"
    )
