"""Cells of CSV files, which people open in spreadsheets: what somebody else wrote must not run there.

A spreadsheet takes a cell that begins with one of these signs for a formula. So every file of ours has a `'`
before the text of such a cell, as OWASP's page on CSV injection says. Numbers are written as they are. All
cells are quoted (csv.QUOTE_ALL), because in half of Europe a spreadsheet begins a cell after a semicolon.
"""

import re

RUNS = "=+-@\t\r\n＝＋－＠"  # the wide ones in East Asia
QUOTE = "'"
# A text that would run, and one that looks as if it had got a `'`: it gets another one, and can be read back.
RUNNING = re.compile(f"^{QUOTE}*[{re.escape(RUNS)}]")


def cell(value: object) -> object:
    """Return a value as the cell of a CSV file: a text that would run has a `'` before it."""
    return QUOTE + value if isinstance(value, str) and RUNNING.match(value) else value


def text_of(written: str) -> str:
    """Return the text of a cell that `cell` wrote."""
    return written[1:] if written.startswith(QUOTE) and RUNNING.match(written) else written
