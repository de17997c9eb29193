// Shows a person's streak, points, badges and ledger, and why a day counts.

import { get, part } from "./api.js";
import { count, dayName, h, moment, number, say, spoken, table, trouble } from "./dom.js";
import { streak } from "./source.js";

const DAYS_SHOWN = 14;
const DAY_MILLISECONDS = 86_400_000;
const KINDS = { EARN: "Earned", REDEEM: "Redeemed", REVERSE: "Reversed", EXPIRE: "Expired", ADJUST: "Adjusted" };

const TAKEN = { CLAWBACK: "Taken back", RERATE: "Corrected" };
const what = (entry) => entry.freeze ? `Freeze ${entry.freeze.toLowerCase()}`
  : entry.kind in TAKEN ? `${TAKEN[entry.kind]}: ${spoken(entry.event_type)}`
  : spoken(entry.event_type ?? entry.reward_id ?? KINDS[entry.kind] ?? entry.kind);
const signed = (points) => points > 0 ? `+${number(points)}` : number(points).replace("-", "−");

// Returns the DAYS_SHOWN dates that end with `last`, oldest first.
const datesUpTo = (last) => Array.from({ length: DAYS_SHOWN }, (_, index) =>
  new Date(Date.parse(`${last}T00:00:00Z`) - (DAYS_SHOWN - 1 - index) * DAY_MILLISECONDS).toISOString().slice(0, 10));

const explained = (told) => h("div", {},
  h("p", {}, h("strong", {}, `${dayName(told.date)} ${told.counts ? "counts" : "does not count"}: `), `${told.rule}.`),
  h("p", { class: "note" }, [
    told.counts && `${count(told.events_count, "event")}, ${count(told.points_earned, "point")}`,
    told.event && `first: ${spoken(told.event.event_type).toLowerCase()} at ${moment(told.event.occurred_at)}`,
    `read in ${told.zone}`,
    told.streak_length > 0 && `streak ${count(told.streak_length, "day")} long that day`,
    told.freeze_used && "a freeze was used",
  ].filter(Boolean).join(" · ")));

const explainer = (profile, active, view) => {
  const told = h("div", { class: "told", "aria-live": "polite" });
  const input = h("input", { type: "date", id: "explain-date", value: profile.as_of, max: profile.as_of, required: true });
  const explain = async (date) => {
    input.value = date;
    for (const day of strip.querySelectorAll("button")) day.setAttribute("aria-pressed", day.dataset.date === date);
    try {
      told.replaceChildren(explained(
        await get(`v1/users/${part(view.person.user)}/streak/explain?date=${part(date)}`, view.signal)));
    } catch (error) {
      if (!view.signal.aborted) told.replaceChildren(trouble(error));
    }
  };
  const strip = h("ol", { class: "days" }, datesUpTo(profile.as_of).map((date) => h("li", {},
    h("button", {
      type: "button", "data-date": date, "aria-pressed": "false", class: active.has(date) ? "on" : "off",
      "aria-label": `${dayName(date)}: ${active.has(date) ? "active" : "no activity"}. Explain`,
      onclick: () => explain(date),
    }, h("span", {}, dayName(date, { weekday: "narrow" })), h("b", {}, Number(date.slice(8)))))));
  return h("section", { class: "card", "aria-labelledby": "days-title" },
    h("h2", { id: "days-title" }, "Your days"), strip,
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); explain(input.value); } },
      h("label", { for: "explain-date" }, "Why does a day count?"), input, h("button", { class: "quiet" }, "Explain")),
    told);
};

const figure = (name, value, note) => h("div", {}, h("dt", {}, name), h("dd", {}, value), note && h("dd", { class: "note" }, note));

const badges = (stats) => {
  const held = stats?.badges_earned ?? [];
  return h("section", { class: "card", "aria-labelledby": "badges-title" },
    h("h2", { id: "badges-title" }, "Badges"),
    held.length
      ? h("ul", { class: "badges" }, held.map((badge) => h("li", { title: `Earned on ${dayName(badge.earned_on)}` }, badge.title)))
      : h("p", { class: "note" }, "None yet. The first comes with your first answers."),
    stats && h("p", { class: "note" }, `${count(stats.total_answers, "answer")} given.`));
};

const ledger = (entries) => h("section", { class: "card", "aria-labelledby": "ledger-title" },
  h("h2", { id: "ledger-title" }, "Ledger"),
  table("Your latest ledger entries", ["Entry", "Points", "Balance"],
    entries.filter((entry) => entry.kind !== "OPEN").map((entry) => [
      h("span", {}, what(entry), h("small", {}, moment(entry.created_at))), signed(entry.points), number(entry.balance),
    ]),
    "No entries yet."));

export const show = async (root, view) => {
  const user = `v1/users/${part(view.person.user)}`;
  const [profile, activity, entries, stats] = await Promise.all([
    view.refreshFigures(view.signal),
    get(`${user}/activity?limit=60`, view.signal),
    get(`${user}/ledger?limit=12`, view.signal),
    get("v1/stats/me", view.signal).catch(() => null),
  ]);
  const active = new Set(activity.activity.map((day) => day.activity_date));
  root.replaceChildren(
    h("h1", { tabindex: "-1" }, "You"),
    h("section", { class: "hero", "aria-label": "Your streak" },
      streak(profile),
      h("dl", { class: "tiles" },
        figure("Points", number(profile.total_bestie_points), "all that you have earned"),
        figure("Balance", number(profile.balance), profile.debt ? "what you owe: your next points pay it" : "what is left to spend"),
        figure("Longest", count(profile.longest_streak, "day")),
        figure("Freezes", number(profile.freezes_available)))),
    explainer(profile, active, view), badges(stats), ledger(entries.entries));
  say(`Your streak is ${count(profile.current_streak, "day")}.`);
};
