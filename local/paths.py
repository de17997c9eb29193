"""The files of the laptop cloud. All are under .local/ in the checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"
STACK = LOCAL / "stack.json"
LOGS = LOCAL / "logs"
REPORT = LOCAL / "report.html"
WAREHOUSE = LOCAL / "warehouse.duckdb"
ASKED = LOCAL / "asked.txt"  # for which consumer somebody last began to wait, and when
