// Makes elements from data. Text is always set as text: no code of the page parses HTML.

const SVG = "http://www.w3.org/2000/svg";

const fill = (node, props, children) => {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
};

// Makes an element: h("p", {class: "note"}, "text", node, [nodes]). A prop that starts with "on" is a listener.
export const h = (tag, props = {}, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props = {}, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const byId = (id) => document.getElementById(id);

// Says something to people who do not see the screen. It clears the text first, so that a screen reader says the
// same words twice if they come twice.
export const say = (text) => {
  const status = byId("status");
  status.textContent = "";
  setTimeout(() => { status.textContent = text; }, 50);
};

export const trouble = (error) => h("p", { class: "trouble", role: "alert" }, error.message || String(error));

// Makes a table with a caption. A row is an array of texts or nodes; its first cell is the heading of the row.
export const table = (caption, heads, rows, empty) => {
  if (!rows.length) return h("p", { class: "note" }, empty);
  const box = h("div", { class: "scroll", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map(([first, ...rest]) =>
        h("tr", {}, h("th", { scope: "row" }, first), rest.map((cell) => h("td", {}, cell)))))));
  // The keyboard stops at a table only if the table is wider than its box, and can be scrolled.
  new ResizeObserver(() => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }).observe(box);
  return box;
};

// Asks before something that cannot be undone; resolves to whether the person agreed. Escape says no.
export const agreement = (root, question, consequence, yes) => new Promise((resolve) => {
  const answer = (value) => ({ type: "button", onclick: () => box.close(value) });
  const box = h("dialog", { class: "card", "aria-labelledby": "sure", onclose: () => { box.remove(); resolve(box.returnValue === "yes"); } },
    h("h2", { id: "sure", tabindex: "-1", autofocus: true }, question), h("p", {}, consequence),
    h("p", { class: "row" }, h("button", { ...answer("yes"), class: "main" }, yes), h("button", { ...answer("no"), class: "quiet" }, "Cancel")));
  root.append(box);
  box.showModal();
});

export const locale = navigator.language.startsWith("en") ? navigator.language : "en";
const plural = new Intl.PluralRules("en");
export const number = (value) => new Intl.NumberFormat(locale).format(value);
export const count = (value, one, many = `${one}s`) =>
  `${number(value)} ${plural.select(value) === "one" ? one : many}`;

// Makes words of a name of the book: "QUESTION_ANSWERED" becomes "Question answered".
export const spoken = (text) => text.toLowerCase().replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());

// Tells an instant relative to now: "in 3 hours", "5 minutes ago".
export const relative = (instant, now = Date.now()) => {
  const seconds = (Date.parse(instant) - now) / 1000;
  const format = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return format.format(Math.round(seconds / size), unit);
  }
  return format.format(Math.round(seconds), "second");
};

// Shows a calendar date. A date is no instant, so it is read and shown in UTC, and no zone moves it.
export const dayName = (date, style = { weekday: "long", day: "numeric", month: "long" }) =>
  new Intl.DateTimeFormat(locale, { ...style, timeZone: "UTC" }).format(new Date(`${date}T00:00:00Z`));
export const moment = (instant) =>
  new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(new Date(instant));
export const timeOfDay = (instant) => new Intl.DateTimeFormat(locale, { timeStyle: "short" }).format(new Date(instant));
export const clock = (instant) => new Intl.DateTimeFormat(locale, { timeStyle: "medium" }).format(new Date(instant));

export const STATUS = {
  active: "Today counts already.",
  at_risk: "Do something today to keep it.",
  broken: "It ended. Today can begin a new one.",
  none: "The first thing that you do begins it.",
};
