"""How a type of notification of a part is declared (notices.py)."""

from collections.abc import Mapping
from dataclasses import dataclass

from rules.parts import Part

FieldForms = Mapping[str, type | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class NoticeKind:
    """One type, which is about things of one kind, its holders."""

    type: str
    part: Part
    holder: str  # what the names of its holders begin with, such as "lead/"
    holder_name: str  # the field by which messages name the holder
    fields: FieldForms  # what a filter may ask for, as FILTER_FIELDS has it
    is_last: bool = False  # whether a holder has this one notification, and no more
    # An endpoint gets only notices of those whom it names in the field `whose`, by the field `whose_data` of
    # `data`. "": it gets notices of its own organization, by the field `organization_id`.
    whose: str = ""
    whose_data: str = "organization_id"
    whose_meaning: str = ""  # what the API says of the field
    nobody: str = ""  # what an endpoint without the field hears of
