"""A Firehose in the process."""

from typing import Any


class Firehose:
    """Takes what it is sent, but refuses the records it was told to, as often as it was told to."""

    def __init__(self, refusals: dict[bytes, int] | None = None, error: Exception | None = None) -> None:
        self.calls: list[list[bytes]] = []
        self.taken: list[bytes] = []
        self.refusals, self.error = refusals or {}, error

    def put_record_batch(self, DeliveryStreamName: str, Records: list[dict[str, bytes]]) -> dict[str, Any]:  # noqa: N803
        rows = [each["Data"] for each in Records]
        self.calls.append(rows)
        if self.error:
            raise self.error
        results: list[dict[str, str]] = []
        for row in rows:
            if self.refusals.get(row, 0) > 0:
                self.refusals[row] -= 1
                results.append({"ErrorCode": "ServiceUnavailableException"})
            else:
                self.taken.append(row)
                results.append({"RecordId": "1"})
        return {"FailedPutCount": sum("ErrorCode" in each for each in results), "RequestResponses": results}
