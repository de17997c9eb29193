"""Parts of the product that a deployment may leave out (the template's parameters WithLeads, WithQuestions).

Whatever is of such a part says so where it is declared: a store, an entity of the lake, a route. What is of
no part is always there.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum


class Part(StrEnum):
    """A part that may be left out."""

    LEADS = "leads"
    QUESTIONS = "questions"


ALL_PARTS = frozenset(Part)
# In a JSON Schema and in the OpenAPI document: the part that all of it is of, and parts of values of `enum`.
OF_PART, VALUES_OF_PARTS = "x-part", "x-values-of-parts"


def parts_of(parameters: Mapping[str, str]) -> frozenset[Part]:
    """Return the parts that the template's parameters ask for. parameters: those that were given."""
    return frozenset(part for part in Part if parameters.get(f"With{part.title()}", "true") == "true")


def parameters_of(deployed: Collection[Part]) -> dict[str, str]:
    """Return the template's parameters that ask for some parts, and for no others."""
    return {f"With{part.title()}": str(part in deployed).lower() for part in Part}


def is_deployed(part: Part | None, deployed: Collection[Part]) -> bool:
    """Whether what is of a part is there. part: None for what is of none."""
    return part is None or part in deployed
