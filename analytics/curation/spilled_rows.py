"""Rows that memory cannot hold wait on disk in pieces, by a hash of the key: all rows of one key are in one.

A piece is small enough for memory. So any number of rows is deduplicated and sorted, piece after piece.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from analytics.curation import kept_rows
from analytics.curation.key_hash import hashes
from analytics.lake.arrow_buffers import as_array
from rules.lake.entities import Entity

PIECES = 32  # 20 million rows of 250 bytes are pieces of 160 MB
# Beyond this the rows of a piece are deduplicated while it is read: one key may have very many versions.
PIECE_BYTES_MAX = 256 * 2**20


class SpilledRows:
    """Rows of an entity, each with `n`, the place in which it came. folder: takes the pieces."""

    def __init__(self, entity: Entity, schema: pa.Schema, folder: Path) -> None:
        self._entity, self._schema = entity, schema
        folder.mkdir()
        self._paths = [folder / f"{number}.arrow" for number in range(PIECES)]
        how = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        self._writers = [
            pa.ipc.new_stream(pa.OSFile(str(path), "wb"), schema, options=how) for path in self._paths
        ]

    def add(self, rows: pa.Table) -> None:
        """Add rows, one chunk a column: the entity's columns and `n`."""
        pieces = (hashes([rows[name].chunk(0) for name in self._entity.key]) % PIECES).astype(np.uint8)
        order = np.argsort(pieces, kind="stable")
        rows = rows.take(as_array(order))
        ends = np.searchsorted(pieces[order], np.arange(PIECES + 1))
        for writer, first, last in zip(self._writers, ends[:-1], ends[1:], strict=True):
            writer.write_table(rows.slice(first, last - first))

    def pieces(self) -> Iterator[pa.Table]:
        """Yield each piece that has rows, one chunk a column, and remove it. Nothing is added any more."""
        self.close()
        for path in self._paths:
            rows = self._read(path)
            path.unlink()
            if rows.num_rows:
                yield rows

    def _read(self, path: Path) -> pa.Table:
        parts: list[pa.Table] = []
        size, most = 0, PIECE_BYTES_MAX
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as batches:
            for batch in batches:
                parts.append(pa.Table.from_batches([batch]))
                size += batch.nbytes
                if size > most:
                    rows = kept_rows.together(parts, self._schema)
                    parts.append(rows.take(as_array(kept_rows.kept(self._entity, rows))))
                    size = parts[0].nbytes
                    most = max(PIECE_BYTES_MAX, 2 * size)
        return kept_rows.together(parts, self._schema)

    def close(self) -> None:
        """Close the pieces' files. To close them again does nothing."""
        for writer in self._writers:
            writer.close()
