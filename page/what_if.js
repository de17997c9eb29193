// For admins: draws what another book would have led to, from the report of `streakline rules what-if`. The file stays here.

import { count, h, number, say, spoken, table, trouble } from "./dom.js";
import { figure } from "./plots.js";

const BYTES_MAX = 10_000_000;
const IMPOSSIBLE_SHOWN = 100;
const MONTHS_MAX = 24;
const REASONS_SHOWN = 3;
const COMMAND = "streakline rules what-if book.yaml --json > what-if.json";

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

// Streaks and achievements that differ. A report of an earlier release has none.
const goals = ({ streaks = [], achievements = [] } = {}) => [
  ...streaks.length ? [h("h3", {}, "Streaks of the book that differ"),
    table("Streaks of the book that differ", ["Streak", "Is", "Per", "Users who ever reached a period", "Users who have it now", "Longest"],
      streaks.map((each) => [spoken(each.name), each.change, each.per, both(each, "reached"), both(each, "current"), both(each, "longest")]), "")] : [],
  ...achievements.length ? [h("h3", {}, "Achievements that differ"),
    table("Achievements that differ", ["Achievement", "Is", "Users who have it", "Users who would"],
      achievements.map((each) => [each.title || spoken(each.name), each.change, number(each.before), number(each.after)]), "")] : [],
];

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
    figure("plot-survival", "Streaks that reach so many days", "The share of all runs of active dates that reach so many days, before and after.", "Days", survival, share, true),
  ];
};

const impossible = ({ all, points, listed }) => all
  ? [h("h3", {}, `Not possible: ${number(all)}, of ${count(points, "point")}`),
    table("Not possible", ["User", "What", "Date", "Points", "Missing", "Why"],
      listed.slice(0, IMPOSSIBLE_SHOWN).map((each) => [each.user_id, each.what, each.at.slice(0, 10), number(each.points), number(each.missing), each.why]), "")]
  : [h("p", {}, "All redemptions, freezes and pauses would have been possible.")];

const largest = (rows) => [h("h3", {}, "The largest changes"),
  table("The largest changes", ["User", "Balance", "Earned", "Longest", "Why"], rows.map((row) => [
    row.user_id, arrow(row, "balance"), arrow(row, "earned"), arrow(row, "longest"),
    [...row.why.slice(0, REASONS_SHOWN), ...row.impossible.slice(0, 1)].join("; "),
  ]), "Nobody's points change.")];

const drawn = (report) => {
  const { users } = report;
  return [
    h("h3", { id: "what-if-told", tabindex: "-1" }, `What if ${report.book} had been in force`),
    h("p", {}, `Of ${count(users.all, "user")} ${number(users.gain)} would have a higher balance, ${number(users.lose)} a lower one, and ${number(users.same)} the same.`),
    totals(report), ...goals(report.goals), h("div", { class: "plots" }, plots(report)), ...impossible(report.impossible), ...largest(report.largest_changes),
  ];
};

const NO_REPORT = `This file is no report. Make one with: ${COMMAND}`;
const read = async (file) => {
  if (file.size > BYTES_MAX) throw new Error(NO_REPORT);
  const text = await file.text();
  try {
    return drawn(JSON.parse(text));
  } catch {
    throw new Error(NO_REPORT);
  }
};

export const whatIf = () => {
  const out = h("div", { class: "told stack", "aria-live": "polite" });
  const open = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
      out.replaceChildren(...await read(file));
      say("The report is shown.");
    } catch (error) {
      out.replaceChildren(trouble(error));
    }
  };
  return h("section", { class: "card", "aria-labelledby": "what-if-title" },
    h("h2", { id: "what-if-title" }, "What another book would have led to"),
    h("p", {}, "Before you publish a book, try it on what has happened. This command reads the lake, writes nothing to it, and tells who gains and who loses:"),
    h("pre", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The command" }, COMMAND),
    h("label", { for: "what-if-file" }, "Show its report"),
    h("input", { id: "what-if-file", type: "file", accept: ".json,application/json", onchange: open }),
    h("p", { class: "note" }, "The file stays in this browser. --page what-if.html makes a page to send on instead; --from DAY --to DAY choose the days."),
    out);
};
