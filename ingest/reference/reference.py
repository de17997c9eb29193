"""The reference: one page of HTML from an OpenAPI document. It needs no script and no style of its own."""

from typing import Any

from ingest.reference.commands import SETTINGS, curl, of_now
from ingest.reference.markup import Markup, element, joined
from ingest.reference.shapes import shape
from ingest.reference.tags import ORDER
from ingest.web.json_schema import Schema

Operation = dict[str, Any]
SUCCESS = "2"
FIRST = "/v1/events"


def reference(document: dict[str, Any], stylesheet: str) -> str:
    """Return the page. stylesheet: the address of its style, relative to the page's own."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", f"{document['info']['title']} API"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="stylesheet", href=stylesheet),
    )
    groups = [(tag, found) for tag in ORDER if (found := _operations(document, tag))]
    parts = document["components"]["schemas"]
    main = element(
        "main",
        element("h1", f"{document['info']['title']} API", tabindex="-1"),
        element("p", document["info"]["description"], "."),
        _beginning(document),
        *(_group(tag, found, parts) for tag, found in groups),
        _errors(document),
        _schemas(parts),
        id="main",
    )
    skip = element("a", "Skip to the content", href="#main", class_="skip")
    body = element("body", skip, _contents(groups), main)
    return "<!doctype html>" + element("html", head, body, lang="en")


def _operations(document: dict[str, Any], tag: str) -> list[tuple[str, str, Operation]]:
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation["tags"] == [tag]
    ]


def _contents(groups: list[tuple[str, list[tuple[str, str, Operation]]]]) -> Markup:
    def entry(method: str, path: str, operation: Operation) -> Markup:
        name = element("code", f"{method.upper()} {path}")
        return element("li", element("a", name, href=f"#{operation['operationId']}"))

    listed = [
        element(
            "details",
            element("summary", tag),
            element("ul", *(entry(*each) for each in found)),
            open=found[0][1] == FIRST,
        )
        for tag, found in groups
    ]
    further = [
        ("First event", "#first"),
        ("Errors", "#errors"),
        ("Schemas", "#schemas"),
        ("OpenAPI", "openapi.json"),
    ]
    links = element("ul", *(element("li", element("a", name, href=target)) for name, target in further))
    return element("nav", links, *listed, aria_label="Contents")


def _beginning(document: dict[str, Any]) -> Markup:
    """Return how to send the first event, and see what came of it."""
    parts = document["components"]["schemas"]
    event = document["paths"][FIRST]["post"]
    profile = document["paths"]["/v1/users/{user_id}"]["get"]
    return element(
        "section",
        element("h2", "Send the first event", id="first"),
        element(
            "p",
            "Every call has a bearer token of your sign-in service; its ",
            element("code", "sub"),
            " is the user. On the laptop, ",
            element("code", "streakline token --user ada"),
            " makes one.",
        ),
        _code(SETTINGS, "Settings of the shell"),
        element(
            "p",
            "Send what happened. The same event with the same key may be sent any number of times:"
            " it counts once.",
        ),
        _code(of_now(curl("post", FIRST, event, parts)), "Send an event"),
        element("p", "A moment later the profile has it:"),
        _code(curl("get", "/v1/users/{user_id}", profile, parts), "Read the profile"),
    )


def _group(tag: str, found: list[tuple[str, str, Operation]], parts: dict[str, Schema]) -> Markup:
    return element("section", element("h2", tag), *(_operation(*each, parts) for each in found))


def _operation(method: str, path: str, operation: Operation, parts: dict[str, Schema]) -> Markup:
    name = operation["operationId"]
    body = operation.get("requestBody")
    media = next(iter(body["content"].items())) if body else None
    return element(
        "article",
        element(
            "h3",
            element("code", method.upper(), class_=f"method {method}"),
            " ",
            element("code", path),
            id=name,
        ),
        element("p", operation["summary"], "."),
        element("p", operation["description"]) if operation.get("description") else None,
        None if operation["security"] else element("p", "Needs no token.", class_="note"),
        _parameters(operation["parameters"]),
        joined(
            [element("h4", f"Body: {media[0]}"), element("div", shape(media[1]["schema"]), class_="shape")]
        )
        if media
        else None,
        _code(curl(method, path, operation, parts), f"curl of {method.upper()} {path}"),
        *(_answer(code, each) for code, each in operation["responses"].items() if code.startswith(SUCCESS)),
        element("p", element("a", "Errors", href="#errors"), " are the same everywhere.", class_="note"),
        aria_labelledby=name,
    )


def _parameters(parameters: list[dict[str, Any]]) -> Markup | None:
    if not parameters:
        return None
    rows = [
        joined(
            [
                element(
                    "dt",
                    element("code", each["name"]),
                    f" in the {each['in']}",
                    element("em", " required") if each["required"] else None,
                ),
                element("dd", shape(each["schema"])),
            ]
        )
        for each in parameters
    ]
    return joined([element("h4", "Parameters"), element("dl", *rows, class_="fields")])


def _answer(code: str, response: dict[str, Any]) -> Markup:
    media, content = next(iter(response["content"].items()))
    return joined(
        [element("h4", f"Answer {code}: {media}"), element("div", shape(content["schema"]), class_="shape")]
    )


def _code(text: str, label: str) -> Markup:
    # It scrolls where it is wide, so the keyboard must be able to come to it.
    return element("pre", element("code", text), tabindex="0", role="region", aria_label=label)


def _errors(document: dict[str, Any]) -> Markup:
    """Return the refusals, which all operations share, and the codes that tell them apart."""
    responses = document["paths"][FIRST]["post"]["responses"]
    rows = [
        joined([element("dt", element("code", code)), element("dd", each["description"])])
        for code, each in responses.items()
        if not code.startswith(SUCCESS)
    ]
    return element(
        "section",
        element("h2", "Errors", id="errors"),
        element(
            "p",
            "The body of an error is ",
            element("a", "Error", href="#schema-Error"),
            ": its code is for programs, its message for people.",
        ),
        element("dl", *rows, class_="fields"),
    )


def _schemas(parts: dict[str, Schema]) -> Markup:
    shown = [
        element(
            "article", element("h3", name, id=f"schema-{name}"), element("div", shape(each), class_="shape")
        )
        for name, each in parts.items()
    ]
    return element("section", element("h2", "Schemas", id="schemas"), *shown)
