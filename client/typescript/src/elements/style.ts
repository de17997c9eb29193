/**
 * How the elements look. Ink, font and scheme are those of the page around; lines and soft ink follow from the ink, so that
 * they fit any paper. What a page may change: the custom properties `--streakline-*`, and the parts.
 */

const CSS = `
:host { display: block; min-inline-size: 0; }
:host([hidden]) { display: none; }
.root {
  --ink: var(--streakline-ink, currentColor);
  --soft: var(--streakline-soft, color-mix(in srgb, currentColor 76%, transparent));
  --line: var(--streakline-line, color-mix(in srgb, currentColor 18%, transparent));
  --edge: var(--streakline-edge, color-mix(in srgb, currentColor 60%, transparent));
  --accent: var(--streakline-accent, light-dark(#a83c14, #f0916a));
  --accent-ink: var(--streakline-accent-ink, light-dark(#fff, #22120b));
  --wash: var(--streakline-wash, color-mix(in srgb, currentColor 8%, transparent));
  --bad: var(--streakline-bad, light-dark(#b3261e, #ff9d94));
  --focus: var(--streakline-focus, light-dark(#1a56c4, #9cc0ff));
  --radius: var(--streakline-radius, 8px);
  color: var(--ink); display: grid; gap: 0.75rem; grid-template-columns: minmax(0, 1fr);
  font-family: var(--streakline-font, inherit); font-size: var(--streakline-size, 1rem); font-weight: 400; font-style: normal; line-height: 1.5;
  letter-spacing: normal; word-spacing: normal; text-transform: none; text-indent: 0; text-align: start; text-shadow: none;
  white-space: normal; overflow-wrap: anywhere; word-break: normal; visibility: visible; pointer-events: auto; cursor: auto; user-select: auto;
}
.root:focus { outline: none; }
* { box-sizing: border-box; }
p { margin: 0; }
.soft { color: var(--soft); }
.unseen { position: absolute; inline-size: 1px; block-size: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: var(--radius); }
.caption { font-family: var(--streakline-heading-font, inherit); font-weight: 600; font-size: 1.05em; text-align: start; padding: 0; }
.trouble { color: var(--bad); border-inline-start: 3px solid; padding-inline-start: 0.75rem; display: grid; gap: 0.5rem; justify-items: start; font-weight: 500; }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--edge); border-radius: var(--radius); min-block-size: 44px; min-inline-size: 44px; padding: 0.4rem 0.9rem; cursor: pointer; }
button:hover { background: var(--wash); }
button[aria-disabled] { opacity: 0.4; cursor: default; }
.streak { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 0.7rem; }
.streak :is(b, span) { font-family: var(--streakline-heading-font, inherit); }
.streak b { font-size: var(--streakline-number-size, clamp(3rem, 2.4rem + 3vw, 5rem)); font-weight: 600; line-height: 0.95; color: var(--accent); font-variant-numeric: lining-nums; }
.streak span { font-size: 1.3em; font-weight: 500; line-height: 1.2; }
table { border-collapse: collapse; inline-size: 100%; font-size: 0.95em; font-variant-numeric: tabular-nums; }
th, td { font-weight: 400; text-align: start; vertical-align: baseline; }
.board th, .board td { padding: 0.55rem 0.35rem; border-block-end: 1px solid var(--line); }
.board :is(th, td):is(:first-child, :last-child) { overflow-wrap: normal; inline-size: 2.6em; }
.board :is(th, td):last-child { text-align: end; }
.board thead th { color: var(--soft); font-size: 0.9em; }
.board .own > * { background: var(--wash); font-weight: 700; }
.pairs :is(th, td):first-child { overflow-wrap: anywhere; inline-size: auto; }
.head { display: flex; align-items: center; justify-content: space-between; gap: 0.5rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.1rem 1.2rem; }
.months { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); align-items: start; }
.one { max-inline-size: 26rem; grid-template-columns: minmax(0, 1fr); }
.month { max-inline-size: 30rem; table-layout: fixed; font-size: 0.85em; }
.month :is(th, td) { padding: 1px; text-align: center; vertical-align: middle; border-radius: var(--radius); }
.month th { color: var(--soft); }
.month tbody th { vertical-align: top; line-height: 1.15; padding-block-start: calc(0.44rem + 2px); }
.month td span { display: grid; place-items: center; align-content: center; min-block-size: 2.75rem; line-height: 1.15; border: 1px solid transparent; border-radius: var(--radius); }
.month i::before { content: attr(data-sign); }
.month i { font-style: normal; font-size: 0.75em; min-block-size: 0.9rem; }
.month [data-key] { cursor: pointer; }
.month .none span { color: var(--soft); }
.month .active span { background: var(--accent); color: var(--accent-ink); font-weight: 700; }
.month .covered span { border: 1px dashed var(--accent); background: var(--wash); }
.month .missed span { border-color: var(--edge); }
.month [aria-current] span { outline: 2px solid; outline-offset: -4px; }
@media (forced-colors: active) { .month .active span { border: 2px solid; } .board .own > * { outline: 1px solid; } }
`;

const made = new WeakMap<Document, CSSStyleSheet>();

/** Return the sheet for a document. A sheet that a script makes is no inline style: a strict policy lets it be. */
export function sheetOf(owner: Document): CSSStyleSheet {
  let sheet = made.get(owner);
  if (!sheet) {
    sheet = new (owner.defaultView ?? globalThis as unknown as typeof globalThis & Window).CSSStyleSheet();
    sheet.replaceSync(CSS);
    made.set(owner, sheet);
  }
  return sheet;
}
