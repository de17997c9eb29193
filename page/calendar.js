// Shows a year: which dates were active, which were covered, and which were missed.

import { get, part } from "./api.js";
import { count, dayName, h, number, say } from "./dom.js";

const DAY_MILLISECONDS = 86_400_000;
const FIRST_YEAR = 1970;
const A_WEEK = 7;
const MONTHS = 12;
const BEFORE = "before_first_activity";
// What a date was: the class of its cell, a sign for those who see it, and words.
const STATES = {
  active: ["active", "●", "active"],
  covered_by_freeze: ["covered", "❄", "covered by a freeze"],
  paused: ["covered", "‖", "paused"],
  skipped_by_zone: ["covered", "–", "skipped by the time zone"],
  amnesty: ["covered", "–", "an outage: no miss"],
  missed: ["missed", "×", "missed"],
};

const at = (date) => Date.parse(`${date}T00:00:00Z`);
const dateAt = (instant) => new Date(instant).toISOString().slice(0, 10);
const after = (date, days) => dateAt(at(date) + days * DAY_MILLISECONDS);
const monday = (date) => after(date, -((new Date(at(date)).getUTCDay() + 6) % A_WEEK));

// The number of the week that begins on a Monday, by ISO 8601: its Thursday's place in the year.
const week = (first) => {
  const thursday = after(first, 3);
  return 1 + Math.floor((at(thursday) - at(`${thursday.slice(0, 4)}-01-01`)) / DAY_MILLISECONDS / A_WEEK);
};

const headings = () => Array.from({ length: A_WEEK }, (_, index) => {
  const day = after("2026-01-05", index); // a Monday
  return h("th", { scope: "col" }, h("span", { "aria-hidden": "true" }, dayName(day, { weekday: "narrow" })),
    h("span", { class: "unseen" }, dayName(day, { weekday: "long" })));
});

const cell = (date, month, stateOf) => {
  if (!date.startsWith(month)) return h("td", {});
  const [kind, sign, words] = STATES[stateOf(date)] ?? ["none", "", ""];
  return h("td", { class: kind, "data-date": date },
    h("span", {}, Number(date.slice(8)), h("i", { "aria-hidden": "true" }, sign), words && h("b", { class: "unseen" }, `: ${words}`)));
};

const monthTable = (month, stateOf) => {
  const weeks = [];
  for (let first = monday(`${month}-01`); first.slice(0, 7) <= month; first = after(first, A_WEEK)) weeks.push(first);
  return h("table", { class: "month" },
    h("caption", {}, dayName(`${month}-01`, { month: "long", year: "numeric" })),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Week")), headings())),
    h("tbody", {}, weeks.map((first) => h("tr", {}, h("th", { scope: "row" }, h("span", { class: "unseen" }, "Week "), week(first)),
      Array.from({ length: A_WEEK }, (_, index) => cell(after(first, index), month, stateOf))))));
};

// Counts the dates of a year that were active, covered or missed.
const counts = (year, today, stateOf) => {
  const found = { active: 0, covered: 0, missed: 0 };
  for (let date = `${year}-01-01`; date <= today && date.startsWith(year); date = after(date, 1)) {
    const [kind] = STATES[stateOf(date)] ?? [];
    if (kind) found[kind] += 1;
  }
  return found;
};

const legend = (found) => h("p", { class: "signs" },
  h("span", {}, `● ${number(found.active)} active`),
  h("span", {}, `❄ ‖ ${number(found.covered)} covered by a freeze or a pause`),
  h("span", {}, `× ${number(found.missed)} missed`));

const yearLink = (year) => h("a", { href: `#/calendar/${year}` }, String(year));

const yearOf = (today) => {
  const asked = location.hash.split("/")[2] ?? "";
  const now = today.slice(0, 4);
  return /^\d{4}$/.test(asked) && Number(asked) >= FIRST_YEAR && asked <= now ? asked : now;
};

// Returns a function of a date: what it was, null where there is nothing to say (before the first active date, today
// while it is open, and later).
const reader = (active, covered, first, today) => (date) => {
  if (active.has(date)) return "active";
  if (first === null || date < first || date > today) return null;
  return covered.get(date) ?? (date < today ? "missed" : null);
};

export const show = async (root, view) => {
  const user = `v1/users/${part(view.person.user)}`;
  const { as_of: today } = await view.refreshFigures(view.signal);
  const year = yearOf(today);
  const [begin, end] = [`${year}-01-01`, `${year}-12-31`];
  const [told, before] = await Promise.all([
    get(`${user}/activity?from=${begin}&to=${end}&limit=366&covered=true`, view.signal),
    get(`${user}/streak/explain?date=${begin}`, view.signal),
  ]);
  const active = new Set(told.activity.map((day) => day.activity_date));
  // Dates come newest first. A person who began this year has missed nothing before.
  const first = before.reason === BEFORE ? told.activity.at(-1)?.activity_date ?? null : begin;
  const stateOf = reader(active, new Map(told.covered.map((each) => [each.date, each.reason])), first, today);
  const found = counts(year, today, stateOf);
  const months = Array.from({ length: MONTHS }, (_, index) => `${year}-${String(index + 1).padStart(2, "0")}`)
    .filter((month) => `${month}-01` <= today).reverse();
  root.replaceChildren(h("h1", { tabindex: "-1" }, `Calendar of ${year}`),
    h("p", { class: "years" }, before.reason !== BEFORE && yearLink(Number(year) - 1), end < today && yearLink(Number(year) + 1)),
    legend(found),
    h("div", { class: "months" }, months.map((month) => monthTable(month, stateOf))));
  say(`${count(found.active, "active date")}, ${number(found.covered)} covered, ${number(found.missed)} missed.`);
};
