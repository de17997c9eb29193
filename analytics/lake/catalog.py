"""The Glue catalog's tables over the curated files, so that Athena, Spark and awswrangler can read them.

While curation compacts a day, the day's file and the files of its hours exist side by side for a moment, and
these readers see each row twice. A reader that needs each row once lists the files with
analytics.lake.layout, as the warehouse's load does.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from adapters.platform.tables import chunks
from analytics.lake import layout
from analytics.lake.arrow import glue_columns
from analytics.lake.layout import Partition
from rules.lake.entities import LOADED, Entity
from rules.parts import ALL_PARTS, Part, is_deployed

PARTITIONS_MAX = 100  # in one request
DT_COMMENT = "date of the event, UTC (YYYY-MM-DD), or its month (YYYY-MM) where a history filled the month"
PARQUET = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
}


@dataclass(frozen=True, slots=True)
class Catalog:
    """A database of the Glue catalog."""

    glue: Any  # a botocore client
    database: str
    bucket: str  # the lake's bucket
    deployed: frozenset[Part] = ALL_PARTS

    def ensure(self) -> None:
        """Create missing tables, and give all tables and partitions the columns that are declared now.

        Each partition is compared, so a call that ended early can be repeated. If Glue refuses a partition,
        RuntimeError is raised after the others are done. Raises what botocore raises.
        """
        with suppress(self.glue.exceptions.AlreadyExistsException):
            self.glue.create_database(DatabaseInput={"Name": self.database})
        refused: list[Any] = []
        for entity in LOADED.values():
            if is_deployed(entity.part, self.deployed):
                self._ensure_table(entity)
                refused += self._update_partitions(entity)
        _check(refused)

    def _ensure_table(self, entity: Entity) -> None:
        """Create an entity's table, or give it the columns declared now."""
        wanted = self._table(entity)
        try:
            self.glue.create_table(DatabaseName=self.database, TableInput=wanted)
            return
        except self.glue.exceptions.AlreadyExistsException:
            stored = self.glue.get_table(DatabaseName=self.database, Name=entity.name)["Table"]
        if stored["StorageDescriptor"]["Columns"] != wanted["StorageDescriptor"]["Columns"]:
            self.glue.update_table(DatabaseName=self.database, TableInput=wanted)

    def _update_partitions(self, entity: Entity) -> list[Any]:
        """Give an entity's partitions the columns declared now; returns what Glue refused."""
        # Athena refuses a partition whose columns have other types than the table's.
        wanted, refused = glue_columns(entity), list[Any]()
        pages = self.glue.get_paginator("get_partitions").paginate(
            DatabaseName=self.database, TableName=entity.name
        )
        partitions = [partition for page in pages for partition in page["Partitions"]]
        dates = [
            partition["Values"][0]
            for partition in partitions
            if partition["StorageDescriptor"]["Columns"] != wanted
        ]
        for batch in chunks(dates, PARTITIONS_MAX):
            entries = [
                {"PartitionValueList": [dt], "PartitionInput": self._partition(entity, dt)} for dt in batch
            ]
            answer = self.glue.batch_update_partition(
                DatabaseName=self.database, TableName=entity.name, Entries=entries
            )
            refused += answer.get("Errors", ())
        return refused

    def register(self, partitions: Iterable[Partition]) -> None:
        """Register in Glue the partitions in which these lie. Those that the catalog has stay as they are.

        An entity that analysts do not have is left out. Raises RuntimeError if Glue refuses a partition.
        """
        days = sorted(
            {(partition.entity, partition.dt) for partition in partitions if partition.entity in LOADED}
        )
        for name, days_of_entity in groupby(days, key=itemgetter(0)):
            for batch in chunks(days_of_entity, PARTITIONS_MAX):
                answer = self.glue.batch_create_partition(
                    DatabaseName=self.database,
                    TableName=name,
                    PartitionInputList=[self._partition(LOADED[name], dt) for _, dt in batch],
                )
                errors = answer.get("Errors", ())
                _check(
                    [each for each in errors if each["ErrorDetail"]["ErrorCode"] != "AlreadyExistsException"]
                )

    def _table(self, entity: Entity) -> dict[str, Any]:
        return {
            "Name": entity.name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"classification": "parquet", "EXTERNAL": "TRUE"},
            "PartitionKeys": [{"Name": "dt", "Type": "string", "Comment": DT_COMMENT}],
            "StorageDescriptor": self._storage(entity, layout.curated_prefix(entity.name)),
        }

    def _partition(self, entity: Entity, dt: str) -> dict[str, Any]:
        storage = self._storage(entity, layout.curated_prefix(entity.name, dt))
        return {"Values": [dt], "StorageDescriptor": storage}

    def _storage(self, entity: Entity, prefix: str) -> dict[str, Any]:
        return {**PARQUET, "Columns": glue_columns(entity), "Location": f"s3://{self.bucket}/{prefix}"}


def _check(errors: Sequence[Any]) -> None:
    """Raise RuntimeError if there are errors of partitions."""
    if errors:
        raise RuntimeError(f"Glue refused {len(errors)} partitions: {errors[0]}")
