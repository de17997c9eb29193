"""A stranger's page, of another origin, with a strict policy: what an app that uses the elements has."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ingest.page import FOLDER
from tests.browser.conftest import TIMEOUT_MILLISECONDS, shoot

ORIGIN = "http://app.test"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; require-trusted-types-for 'script';"
    " trusted-types 'none'; base-uri 'none'"
)
STYLE = ":root { color-scheme: light dark; } body { font-family: sans-serif; background: Canvas; color: CanvasText; }"
# A source whose answers a test gives, one call after the other.
MODULE = """
import "./elements.js";
window.calls = [];
window.told = [];
window.answers = {};
for (const name of ["streakline-error", "streakline-date", "streakline-period"])
  addEventListener(name, ({ type, detail }) => told.push([type, detail?.status ?? detail]));
const asked = (name) => (...given) => {
  calls.push([name, ...given]);
  const answer = answers[name];
  return typeof answer === "function" ? answer(...given) : Promise.resolve(answer);
};
window.refusal = (status) => Object.assign(new Error("refused"), { status });
window.client = () => Object.fromEntries(["profile", "activity", "explain", "leaderboard", "board", "rank", "friends"].map((n) => [n, asked(n)]));
window.held = () => { let go, fail; const p = new Promise((a, b) => { go = a; fail = b; }); return Object.assign(p, { go, fail }); };
window.ready = true;
"""


class Stranger:
    """A page with elements. problems: what its console said, and what its policy refused."""

    def __init__(self, page: Any) -> None:
        self.page, self.problems = page, list[str]()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"raised: {error}"))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def open(self, body: str, lang: str = "en-GB", direction: str = "ltr", style: str = STYLE) -> Any:
        html = f"""<!doctype html><html lang="{lang}" dir="{direction}"><head><meta charset="utf-8"><title>An app</title>
            <meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/app.css">
            <script type="module" src="/app.js"></script></head><body><main><h1>An app</h1>{body}</main></body></html>"""
        files = {
            "/": ("text/html", html),
            "/app.css": ("text/css", style),
            "/app.js": ("text/javascript", MODULE),
            "/elements.js": ("text/javascript", (FOLDER / "elements.js").read_text()),
        }

        def serve(route: Any) -> None:
            kind, text = files.get(route.request.url.removeprefix(ORIGIN), ("", ""))
            headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Security-Policy": POLICY}
            route.fulfill(status=200 if kind else 404, body=text, headers=headers)

        self.page.route("**/*", serve)
        self.page.goto(f"{ORIGIN}/")
        self.page.wait_for_function("window.ready")
        return self.page

    def give(self, name: str, number: int = 0, **properties: Any) -> None:
        """Set properties of an element, and wait until they are shown."""
        script = """([name, number, properties]) => {
            const element = document.querySelectorAll(`streakline-${name}`)[number];
            return Object.assign(element, properties).ready; }"""
        self.page.evaluate(script, [name, number, properties])

    def answer(self, name: str, **answers: Any) -> None:
        """Have a source answer an element: texts that begin with `=` are JavaScript."""
        given = ",".join(
            f"{key}: {value[1:] if isinstance(value, str) and value[:1] == '=' else json.dumps(value)}"
            for key, value in answers.items()
        )
        # The policy of the page forbids eval to its own scripts; the browser's own console may.
        self.page.evaluate(
            f"() => {{ Object.assign(answers, {{{given}}});"
            f" const e = document.querySelector('streakline-{name}'); e.client = client(); return e.ready; }}"
        )

    def shoot(self, name: str) -> None:
        shoot(self.page, name)


@contextmanager
def stranger(browser: Any, **options: Any) -> Iterator[Stranger]:
    """Yield a stranger's page; nothing may have been refused by its policy, nor complained of."""
    context = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 900, "height": 900}, **options})
    context.set_default_timeout(TIMEOUT_MILLISECONDS)
    made = Stranger(context.new_page())
    yield made
    context.close()
    assert made.problems == []
