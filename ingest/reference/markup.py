"""Makes HTML. Text is always escaped; only what `element` made is not escaped again."""

from collections.abc import Iterable
from html import escape

VOID = frozenset({"meta", "link"})


class Markup(str):
    """HTML that is safe as it is."""

    __slots__ = ()


def element(tag: str, *children: str | None, **attributes: str | bool) -> Markup:
    """Return an element. A child that is None is left out; `class_` is the attribute class.

    An attribute that is True has no value; False: it is left out.
    """
    given = "".join(
        f" {_name(name)}" if value is True else f' {_name(name)}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not False
    )
    inner = joined(children)
    return Markup(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{inner}</{tag}>")


def joined(children: Iterable[str | None]) -> Markup:
    """Return children one after the other, texts escaped."""
    return Markup(
        "".join(
            each if isinstance(each, Markup) else escape(each, quote=False)
            for each in children
            if each is not None
        )
    )


def _name(attribute: str) -> str:
    return attribute.rstrip("_").replace("_", "-")
