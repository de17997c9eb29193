"""The schema of each kind of row in the lake, and how a table's item becomes a row."""
