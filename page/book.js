// For admins: the book of rules in force, its versions, how two of them differ, another one to check and publish, and
// what that would have led to.

import { ask, get, part } from "./api.js";
import { agreement, count, h, moment, number, say, spoken, table, trouble } from "./dom.js";
import { whatIf } from "./what_if.js";
import { CORE_SCHEMA, load } from "./yaml.js";

const LINES_MAX = 200;
const TEXT_MAX = 160; // characters of a value
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
// Keys in order: one document may come with its keys in another order than the next.
const ordered = (_, value) => isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)) : value;
const exact = (value) => JSON.stringify(value, ordered);
const isPicture = (value) => typeof value === "string" && value.startsWith("data:");
const readable = (name, value) => isPicture(value) ? "a picture" : ordered(name, value);
// A value in words: JSON without quotes. A picture's data says nothing to anybody.
const words = (value) => typeof value === "string" ? readable("", value) : JSON.stringify(value, readable, 1).replace(/\s*\n\s*/g, " ").replaceAll('"', "");
const cut = (text, from = 0) => `${from > 0 ? "... " : ""}${text.slice(from, from + TEXT_MAX)}${text.length > from + TEXT_MAX ? " ..." : ""}`;

// Two long values are cut to where they begin to differ.
const pair = (before, after) => {
  if (isPicture(before) && isPicture(after)) return ["a picture", "another picture"];
  let [one, other] = [words(before), words(after)];
  if (one === other) [one, other] = [exact(before), exact(after)]; // in words alone they look alike
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  const from = Math.max(0, same - TEXT_MAX / 2);
  return [cut(one, from), cut(other, from)];
};
const isSection = (value) => isObject(value) && Object.values(value).length > 0 && Object.values(value).every(isObject);
// What one document has alone: each entry of a section by itself.
const lone = (value, at) => isSection(value) ? Object.keys(value).sort().flatMap((name) => lone(value[name], `${at}.${name}`)) : [[at, cut(words(value))]];

// Returns a row [where, before, after] for each value that two documents do not share, in the order of their keys.
export const differences = (before, after, path = "") =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((name) => {
    const at = path ? `${path}.${name}` : name;
    if (!Object.hasOwn(before, name)) return lone(after[name], at).map(([where, value]) => [where, "nothing", value]);
    if (!Object.hasOwn(after, name)) return lone(before[name], at).map(([where, value]) => [where, value, "gone"]);
    if (isObject(before[name]) && isObject(after[name])) return differences(before[name], after[name], at);
    return exact(before[name]) === exact(after[name]) ? [] : [[at, ...pair(before[name], after[name])]];
  });

const card = (id, title, ...content) => h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), ...content);

const most = (cap) => !cap ? "no limit" : "points" in cap ? `${number(cap.points)} a ${cap.per}` : `${count(cap.events, "event")} a ${cap.per}`;
// An event may earn a number of points, or points by an amount.
const price = (points) => typeof points === "number" ? number(points)
  : `${points.base ? `${number(points.base)}, and ` : ""}${number(points.earns)} for each ${number(points.each)} ${spoken(points.of)}`;
const types = (book) => h("div", { class: "types" }, table("What each event earns", ["Event", "Points", "At most"], Object.entries(book.event_types).map(([name, each]) => [
  h("span", {}, spoken(name), each.declared_by && h("small", {}, `only from a ${each.declared_by}`)), price(each.points), most(each.cap),
]), "None."));

const inForce = (rules) => card("force-title", "In force",
  h("p", {}, `Version ${number(rules.version)}, since ${from(rules)}.`),
  types(rules.book),
  h("details", {}, h("summary", {}, "The whole book, as JSON"),
    h("pre", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The book as JSON" }, JSON.stringify(rules.book, null, 2))));

// The first version is in force since before there were events.
const EARLIEST = "1970-01-01T00:00:00.000000Z";
const since = (version) => version.effective_at > EARLIEST ? version.effective_at : EARLIEST;
const from = (version) => version.effective_at > EARLIEST ? moment(version.effective_at) : "the beginning";

const state = (version, now, current) => version.version === current ? "in force" : Date.parse(version.effective_at) > now ? "planned" : "earlier";

// take: begins another book with a version.
const versionsCard = (versions, current, take) => card("versions-title", "Versions",
  table("Versions of the book", ["Version", "In force from", "State"], versions.map((each) => [
    number(each.version), h("span", {}, from(each), h("small", {}, `by ${each.author}${each.note && `: ${each.note}`}`)),
    h("span", {}, state(each, Date.now(), current), each.version !== current && h("button", { type: "button", class: "quiet", onclick: () => take(each) },
      "Take it", h("span", { class: "unseen" }, `: version ${each.version}`))),
  ]), "None."));

const choice = (id, label, versions, value) => [h("label", { for: id }, label), h("select", { id },
  versions.map((each) => h("option", { value: each.version, selected: each.version === value }, `Version ${each.version}`)))];

// A path may break behind its dots.
const broken = (path) => path.split(/(?<=[._])/).flatMap((piece) => [h("wbr"), piece]).slice(1);
const differenceTable = (rows) => rows.length
  ? [h("p", {}, `${count(rows.length, "difference")}.`),
    h("div", { class: "changes" }, table("Differences", ["Where", "Before", "After"], rows.slice(0, LINES_MAX).map(([where, ...values]) => [broken(where), ...values]), "")),
    rows.length > LINES_MAX && h("p", { class: "note" }, `The first ${LINES_MAX} are shown.`)].filter(Boolean)
  : [h("p", {}, "They are the same.")];

// The API gives the book that is in force at an instant. So a version can be read if one was ever in force.
const documentOf = async (version, signal) => {
  const found = await get(`v1/rules?at=${encodeURIComponent(since(version))}`, signal);
  if (found.version !== version.version) {
    throw new Error(`Version ${version.version} was never in force: version ${found.version} took its place.`);
  }
  return found.book;
};

const comparer = (versions, current, view) => {
  const out = h("div", { class: "told stack", "aria-live": "polite" });
  const before = versions[versions.findIndex((each) => each.version === current) + 1] ?? versions.at(-1);
  const compare = async (form) => {
    const [one, other] = [...form.querySelectorAll("select")].map((select) => versions.find((each) => each.version === Number(select.value)));
    try {
      const [old, now] = await Promise.all([documentOf(one, view.signal), documentOf(other, view.signal)]);
      out.replaceChildren(...differenceTable(differences(old, now)));
    } catch (error) {
      if (!view.signal.aborted) out.replaceChildren(trouble(error));
    }
  };
  return card("compare-title", "Compare two versions",
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); compare(event.target); } },
      choice("compare-before", "Before", versions, before.version), choice("compare-after", "After", versions, current),
      h("button", { class: "quiet" }, "Compare")), out);
};

const faultTable = (error) => error.details?.length
  ? [h("p", { class: "trouble" }, `It is refused: ${count(error.details.length, "fault")}.`),
    table("Faults", ["Where", "What"], error.details.map((each) => [each.field, each.reason]), "")]
  : [trouble(error)];

const indented = (book) => JSON.stringify(book, null, 2);
// Reads a book in JSON or YAML.
const documentIn = (text) => {
  const isJson = text.trimStart().startsWith("{");
  let found = null;
  try {
    if (text.trim()) found = isJson ? JSON.parse(text) : load(text, { schema: CORE_SCHEMA, maxAliases: 100 });
  } catch (error) {
    throw new Error(`This is no ${isJson ? "JSON" : "YAML"}: ${error.message.split("\n")[0]}.`);
  }
  if (!isObject(found)) throw new Error("There is no book here. Begin with the book in force or with a file.");
  return found;
};

// Another book: from the one in force or from a file, changed here, checked by the service, tried, and published.
const editor = (rules, view, root) => {
  const out = h("div", { class: "told stack", "aria-live": "polite" });
  const text = h("textarea", { id: "book-text", class: "code", rows: 10, spellcheck: "false", oninput: () => fresh() });
  const note = h("input", { id: "book-note", maxlength: 500 });
  const publish = h("button", { type: "button", class: "main", hidden: true, onclick: () => attempt(put) }, "Publish");
  const body = (more) => ({ body: { book: documentIn(text.value), note: note.value, ...more }, signal: view.signal });
  const fresh = () => { publish.hidden = true; out.replaceChildren(); };
  const fill = (value) => { text.value = value; fresh(); };
  const attempt = async (work) => {
    try {
      await work();
    } catch (error) {
      if (view.signal.aborted) return;
      publish.hidden = true;
      out.replaceChildren(...faultTable(error));
    }
  };
  const check = async () => {
    const given = body({ dry_run: true });
    const found = await ask("POST", "v1/rules", given);
    const rows = differences(rules.book, given.body.book);
    out.replaceChildren(h("p", { class: "gained" }, `Nothing is wrong with it. It would be version ${number(found.version)}.`), ...differenceTable(rows));
    publish.hidden = !rows.length;
  };
  const put = async () => {
    if (!await agreement(root, "Publish this book?", "It is in force at once: what happens from now on earns what it says.", "Yes, publish")) return;
    const made = await ask("POST", "v1/rules", body({}));
    await show(root, view);
    root.querySelector("h1").focus();
    say(`Version ${number(made.version)} is published.`);
  };
  const take = (version) => attempt(async () => {
    fill(indented(await documentOf(version, view.signal)));
    text.focus();
    say(`Version ${version.version} is in the editor. Nothing is changed until you publish.`);
  });
  const nodes = [card("change-title", "Change the book",
    h("p", {}, "Begin with the book in force or with a file. Nothing is changed until you publish."),
    h("p", { class: "row" },
      h("button", { type: "button", class: "quiet", onclick: () => fill(indented(rules.book)) }, "Take the book in force"),
      h("label", { for: "book-file" }, "or a file (YAML or JSON)"),
      h("input", { id: "book-file", type: "file", accept: ".yaml,.yml,.json", onchange: (event) => attempt(async () => { fill(await event.target.files[0]?.text() ?? ""); fill(indented(documentIn(text.value))); }) })),
    h("form", { onsubmit: (event) => { event.preventDefault(); attempt(check); } },
      h("label", { class: "text" }, h("span", {}, "The book, as YAML or JSON"), text),
      h("label", { class: "text" }, h("span", {}, "Why", h("small", {}, " for those who come later")), note),
      h("p", { class: "row" }, h("button", { class: "quiet" }, "Check and compare"), publish)),
    out), whatIf(() => documentIn(text.value), faultTable, view)];
  return { nodes, take };
};

export const show = async (root, view) => {
  const [rules, { versions }] = await Promise.all([get("v1/rules", view.signal), get("v1/rules/versions", view.signal)]);
  const { nodes, take } = editor(rules, view, root);
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Book of rules"), inForce(rules), versionsCard(versions, rules.version, take),
    ...(versions.length > 1 ? [comparer(versions, rules.version, view)] : []), ...nodes);
  say(`Version ${rules.version} is in force.`);
};
