// For admins: asks what another book would have led to, and draws the report.

import { ask, get, part, pause } from "./api.js";
import { count, h, number, say, spoken, table } from "./dom.js";
import { figure } from "./plots.js";

const LOOK_MILLISECONDS = 1000;
const IMPOSSIBLE_SHOWN = 100;
const MONTHS_MAX = 24;
const REASONS_SHOWN = 3;

const share = (value) => `${(100 * value).toFixed(1)} %`;
const change = ({ before, after }) => (after > before ? "+" : "") + number(after - before);
const arrow = (row, name) => `${number(row[`${name}_before`])} → ${number(row[`${name}_after`])}`;

const totals = ({ points, liability, streaks, refused }) => table("Users, points and streaks", ["Sum", "Before", "After", "Change"], [
  ...[
    ["Points ever earned", points], ["Points that can be redeemed", liability], ["Users with a streak now", streaks.alive],
    ["Days of these streaks", streaks.current], ["Days of all users' longest streaks", streaks.longest],
  ].map(([name, pair]) => [name, number(pair.before), number(pair.after), change(pair)]),
  ["Events that would have been refused", "", number(refused.events), ""],
], "");

const both = (each, name) => `${number(each.before[name])} → ${number(each.after[name])}`;

// Streaks and achievements that differ.
const goals = ({ streaks, achievements }) => [
  ...streaks.length ? [h("h3", {}, "Streaks of the book that differ"),
    table("Streaks of the book that differ", ["Streak", "Is", "Per", "Users who ever reached a period", "Users who have it now", "Longest"],
      streaks.map((each) => [spoken(each.name), each.change, each.per, both(each, "reached"), both(each, "current"), both(each, "longest")]), "")] : [],
  ...achievements.length ? [h("h3", {}, "Achievements that differ"),
    table("Achievements that differ", ["Achievement", "Is", "Users who have it", "Users who would"],
      achievements.map((each) => [each.title || spoken(each.name), each.change, number(each.before), number(each.after)]), "")] : [],
];

// How many users are on each level, and would be.
const levels = (found) => found.length ? [h("h3", {}, "Users on each level"),
  table("Users on each level", ["Level", "Before", "After", "Change"],
    found.map((each) => [each.title || spoken(each.name ?? "none"), number(each.before), number(each.after), change(each)]), "")] : [];

// Points by month, or by year where there are many months.
const periods = (months) => {
  const rows = Object.entries(months);
  if (rows.length <= MONTHS_MAX) return ["month", rows.map(([name, each]) => [name, each.before, each.after])];
  const years = new Map();
  for (const [month, { before, after }] of rows) {
    const sums = years.get(month.slice(0, 4)) ?? [0, 0];
    years.set(month.slice(0, 4), [sums[0] + before, sums[1] + after]);
  }
  return ["year", [...years].map(([name, [before, after]]) => [name, before, after])];
};

const plots = ({ users, by_type: types, by_month: months, streaks }) => {
  const classes = users.by_change.map((each) => [each.change, null, each.users]);
  const [most, , how] = classes.reduce((one, other) => other[2] > one[2] ? other : one);
  const earned = Object.entries(types).map(([name, each]) => [spoken(name), each.before, each.after]);
  const [period, sums] = periods(months);
  const survival = streaks.survival.map((each) => [String(each.days), each.before, each.after]);
  return [
    figure("plot-users", "Users by the change of their balance, in points", `The largest class is ${most} with ${count(how, "user")}.`, "Change", classes, number),
    figure("plot-types", "Points by event type", `${count(earned.length, "event type")}, before and after.`, "Event", earned, number),
    figure("plot-periods", `Points by ${period}`, `${count(sums.length, period)}, before and after.`, spoken(period), sums, number),
    figure("plot-survival", "Streaks that reach so many days", "The share of all runs of active dates that reach so many days, before and after. A run that goes on counts as far as it has come (Kaplan-Meier).", "Days", survival, share, true),
  ];
};

const impossible = ({ all, points, listed }) => all
  ? [h("h3", {}, `Not possible: ${number(all)}, of ${count(points, "point")}`),
    h("div", { class: "refused" }, table("Not possible", ["User", "What", "Date", "Points", "Missing", "Why"],
      listed.slice(0, IMPOSSIBLE_SHOWN).map((each) => [each.user_id, each.what, each.at.slice(0, 10), number(each.points), number(each.missing), each.why]), ""))]
  : [h("p", {}, "All redemptions, freezes, repairs and pauses would have been possible.")];

const largest = (rows) => [h("h3", {}, "The largest changes"),
  h("div", { class: "causes" }, table("The largest changes", ["User", "Balance", "Earned", "Longest", "Why"], rows.map((row) => [
    row.user_id, arrow(row, "balance"), arrow(row, "earned"), arrow(row, "longest"),
    [...row.why.slice(0, REASONS_SHOWN), ...row.impossible.slice(0, 1)].join("; "),
  ]), "Nobody's points change."))];

const drawn = (report) => {
  const { users } = report;
  return [
    h("h3", {}, `What if ${report.book} had been in force`),
    h("p", {}, `Of ${count(users.all, "user")} ${number(users.gain)} would have a higher balance, ${number(users.lose)} a lower one, and ${number(users.same)} the same.`),
    ...(report.limits ?? []).map((limit) => h("p", { class: "note" }, limit)),
    totals(report), ...goals(report.goals), ...levels(report.levels), h("div", { class: "plots" }, plots(report)), ...impossible(report.impossible), ...largest(report.largest_changes),
  ];
};

// Resolves to the report of a what-if that was asked for, once there is one.
const reported = async (found, signal) => {
  while (found.status === "running") {
    await pause(LOOK_MILLISECONDS, signal);
    found = await get(`v1/rules/what-ifs/${part(found.what_if_id)}`, signal);
  }
  if (found.status === "failed") throw new Error(`The what-if failed: ${found.reason}.`);
  return found.report;
};

// Makes the card. candidate: returns the book in question; faults: shows why it, or a day, is refused.
export const whatIf = (candidate, faults, view) => {
  const out = h("div", { class: "told stack", "aria-live": "polite" });
  const day = (id, label, hint) => h("label", { class: "text" }, h("span", {}, label, h("small", {}, ` ${hint}`)), h("input", { id, type: "date", min: "1970-01-01", max: "2999-12-31" }));
  const from = day("what-if-from", "In force from", "empty: always");
  const to = day("what-if-to", "Until", "empty: still");
  let isWorking = false;
  const work = async () => {
    if (isWorking) return; // a button that is disabled would lose the keyboard
    isWorking = true;
    try {
      const days = Object.entries({ from, to }).map(([name, label]) => [name, label.querySelector("input").value]).filter(([, value]) => value);
      const body = { book: candidate(), ...Object.fromEntries(days) };
      out.replaceChildren(h("p", { class: "note" }, "It is being worked out. That takes seconds, or minutes where the history is long."));
      const found = await ask("POST", "v1/rules/what-ifs", { body, signal: view.signal, repeatable: true });
      out.replaceChildren(...drawn(await reported(found, view.signal)));
      say("The report is shown.");
    } catch (error) {
      if (!view.signal.aborted) out.replaceChildren(...faults(error));
    } finally {
      isWorking = false;
    }
  };
  return h("section", { class: "card", "aria-labelledby": "what-if-title" },
    h("h2", { id: "what-if-title" }, "What it would have led to"),
    h("p", {}, "Before you publish the book above, try it on what has happened, up to the last night: who gains, who loses, and what is owed. Nothing is changed."),
    h("form", { onsubmit: (event) => { event.preventDefault(); work(); } }, h("p", { class: "row" }, from, to), h("p", { class: "row" }, h("button", { class: "quiet" }, "What if"))),
    out);
};
