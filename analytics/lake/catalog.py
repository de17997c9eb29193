"""The Glue catalog's tables over the curated files, so that Athena, Spark and awswrangler can read them.

While curation compacts a day, the day's file and the files of its hours exist side by side for a moment, and
these readers see each row twice. A reader that needs each row once lists the files with
analytics.lake.layout, as the warehouse's load does.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adapters.platform.tables import chunks
from analytics.lake import layout
from analytics.lake.arrow import glue_columns
from analytics.lake.layout import Place
from rules.lake.entities import LOADED, Entity

PARTITIONS_MAX = 100  # in one request
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

    def ensure(self) -> None:
        """Create the database and its tables if they are missing; give all the columns declared now.

        Each partition is compared, so what ended early goes on where it was. Raises RuntimeError, after all
        others are done, if Glue refuses a partition; and what botocore raises.
        """
        with suppress(self.glue.exceptions.AlreadyExistsException):
            self.glue.create_database(DatabaseInput={"Name": self.database})
        refused: list[Any] = []
        for entity in LOADED.values():
            self._ensure_table(entity)
            refused += self._update_partitions(entity)
        _check(refused)

    def _ensure_table(self, entity: Entity) -> None:
        wanted = self._table(entity)
        try:
            self.glue.create_table(DatabaseName=self.database, TableInput=wanted)
            return
        except self.glue.exceptions.AlreadyExistsException:
            held = self.glue.get_table(DatabaseName=self.database, Name=entity.name)["Table"]
        if held["StorageDescriptor"]["Columns"] != wanted["StorageDescriptor"]["Columns"]:
            self.glue.update_table(DatabaseName=self.database, TableInput=wanted)

    def _update_partitions(self, entity: Entity) -> list[Any]:
        """Give an entity's partitions the columns declared now; returns what Glue refused."""
        # Athena refuses a partition whose columns have other types than the table's.
        wanted, refused = glue_columns(entity), list[Any]()
        pages = self.glue.get_paginator("get_partitions").paginate(
            DatabaseName=self.database, TableName=entity.name
        )
        found = [each for page in pages for each in page["Partitions"]]
        dates = (each["Values"][0] for each in found if each["StorageDescriptor"]["Columns"] != wanted)
        for some in chunks(dates, PARTITIONS_MAX):
            entries = [
                {"PartitionValueList": [dt], "PartitionInput": self._partition(entity, dt)} for dt in some
            ]
            answer = self.glue.batch_update_partition(
                DatabaseName=self.database, TableName=entity.name, Entries=entries
            )
            refused += answer.get("Errors", ())
        return refused

    def register(self, entity_name: str, dates: Iterable[str]) -> None:
        """Register these dates' partitions; known ones stay. Raises RuntimeError if Glue refuses one."""
        if entity_name not in LOADED:
            return
        entity = LOADED[entity_name]
        for some in chunks(dates, PARTITIONS_MAX):
            answer = self.glue.batch_create_partition(
                DatabaseName=self.database,
                TableName=entity.name,
                PartitionInputList=[self._partition(entity, dt) for dt in some],
            )
            errors = answer.get("Errors", ())
            _check(
                [error for error in errors if error["ErrorDetail"]["ErrorCode"] != "AlreadyExistsException"]
            )

    def register_places(self, places: Iterable[Place]) -> None:
        """Register the partitions in which these places lie, as register does."""
        dates: dict[str, set[str]] = {}
        for place in places:
            dates.setdefault(place.entity, set()).add(place.dt)
        for entity, some in dates.items():
            self.register(entity, sorted(some))

    def _table(self, entity: Entity) -> dict[str, Any]:
        return {
            "Name": entity.name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"classification": "parquet", "EXTERNAL": "TRUE"},
            "PartitionKeys": [{"Name": "dt", "Type": "string", "Comment": "date of the event, UTC"}],
            "StorageDescriptor": self._storage(entity, layout.curated_prefix(entity.name)),
        }

    def _partition(self, entity: Entity, dt: str) -> dict[str, Any]:
        storage = self._storage(entity, layout.curated_prefix(entity.name, dt))
        return {"Values": [dt], "StorageDescriptor": storage}

    def _storage(self, entity: Entity, prefix: str) -> dict[str, Any]:
        return {**PARQUET, "Columns": glue_columns(entity), "Location": f"s3://{self.bucket}/{prefix}"}


def _check(errors: Sequence[Any]) -> None:
    if errors:
        raise RuntimeError(f"Glue refused {len(errors)} partitions: {errors[0]}")
