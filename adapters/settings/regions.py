"""What the functions of a deployment of two regions read from their environment (rule 23).

tables: JSON, a table's name in the template -> its name.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SendingSettings:
    """processors.regions.sending: changes go to peer_queue_url, in peer_region."""

    tables: str
    peer_region: str
    peer_queue_url: str
    failure_queue_url: str


@dataclass(frozen=True, slots=True)
class TakingOverSettings:
    """processors.regions.taking_over: messages wait in changes_queue_url."""

    tables: str
    changes_queue_url: str
    failure_queue_url: str
