// Shows a person's streak, points, level, newest achievements and ledger, and why a day counts.

import { nearest, newest, open, picture, title } from "./achievements.js";
import { get, part } from "./api.js";
import { count, dayName, h, number, say } from "./dom.js";
import { explanation } from "./explain.js";
import { ledgerCard } from "./ledger.js";
import { levelCard } from "./level.js";
import { newsCard, newsOf, spokenNews } from "./news.js";
import { repairCard } from "./repair.js";
import { settingsCard } from "./settings.js";
import { streak } from "./source.js";

const DAYS_SHOWN = 14;
const EARNED_SHOWN = 6;
const DAY_MILLISECONDS = 86_400_000;

// Returns the DAYS_SHOWN dates that end with `last`, oldest first.
const datesUpTo = (last) => Array.from({ length: DAYS_SHOWN }, (_, index) =>
  new Date(Date.parse(`${last}T00:00:00Z`) - (DAYS_SHOWN - 1 - index) * DAY_MILLISECONDS).toISOString().slice(0, 10));

// Returns the date of this device so many days from now.
const dateIn = (days) => new Date(Date.now() + days * DAY_MILLISECONDS).toISOString().slice(0, 10);

const explainer = (profile, active, resting, view) => {
  const { node, explain } = explanation(view);
  const input = h("input", { type: "date", id: "explain-date", value: profile.as_of, max: profile.as_of, required: true });
  const ask = (date) => {
    input.value = date;
    for (const day of strip.querySelectorAll("button")) day.setAttribute("aria-pressed", day.dataset.date === date);
    return explain(date);
  };
  const strip = h("ol", { class: "days" }, datesUpTo(profile.as_of).map((date) => h("li", {},
    h("button", {
      type: "button", "data-date": date, "aria-pressed": "false", class: active.has(date) ? "on" : resting.has(date) ? "off rest" : "off",
      onclick: () => ask(date),
    }, h("span", {}, dayName(date, { weekday: "narrow" })), h("b", {}, Number(date.slice(8))),
    resting.has(date) && !active.has(date) && h("i", { "aria-hidden": "true" }, "\u263e\ufe0e"),
    // The name begins with what is seen, so who speaks to the page can say that (WCAG 2.5.3).
    h("span", { class: "unseen" }, `: ${dayName(date)}, ${active.has(date) ? "active" : resting.has(date) ? "a rest day" : "no activity"}. Explain`)))));
  return h("section", { class: "card", "aria-labelledby": "days-title" },
    h("h2", { id: "days-title" }, "Your days"), strip,
    profile.day_starts_at > "00:00" && h("p", { class: "note" }, `A day lasts until ${profile.day_starts_at} of the next one.`),
    h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); ask(input.value); } },
      h("label", { for: "explain-date" }, "Why does a day count?"), input, h("button", { class: "quiet" }, "Explain")),
    node);
};

const figure = (name, value, note) => h("div", {}, h("dt", {}, name), h("dd", {}, value), note && h("dd", { class: "note" }, note));

const achievementsCard = ({ achievements, secrets = 0 }) => {
  const earned = newest(achievements);
  const [next] = nearest(achievements);
  return h("section", { class: "card", "aria-labelledby": "earned-title" },
    h("h2", { id: "earned-title" }, "Achievements"),
    earned.length
      ? h("ul", { class: "chips" }, earned.slice(0, EARNED_SHOWN).map((each) => h("li", {}, picture(each), title(each))))
      : h("p", { class: "note" }, "None yet."),
    next && h("h3", {}, "Next"), next && h("ul", { class: "texts" }, open(next)),
    h("p", {}, h("a", { href: "#/achievements" }, `All achievements: ${number(earned.length)} of ${number(achievements.length + secrets)} earned`)));
};

// words: what a press in the settings has led to.
export const show = async (root, view, words = "") => {
  const user = `v1/users/${part(view.person.user)}`;
  const [profile, activity, ledger, { book }, told] = await Promise.all([
    view.refreshFigures(view.signal),
    // Wherever the person is, these are more dates than are shown.
    get(`${user}/activity?limit=60&covered=true&from=${dateIn(-DAYS_SHOWN - 1)}&to=${dateIn(1)}`, view.signal),
    ledgerCard(view),
    get("v1/rules", view.signal),
    get(`${user}/achievements`, view.signal).catch(() => ({ achievements: [] })), // refused where a history is too long
  ]);
  const active = new Set(activity.activity.map((day) => day.activity_date));
  const news = newsOf(view.person.user, profile, told.achievements);
  const resting = new Set(activity.covered.filter((day) => day.reason === "rest_day").map((day) => day.date));
  root.replaceChildren(
    h("h1", { tabindex: "-1" }, "You"),
    ...news.length ? [newsCard(news)] : [],
    h("section", { class: "hero", "aria-label": "Your streak" },
      streak(profile),
      h("dl", { class: "tiles" },
        profile.debt ? figure("Owed", number(profile.debt), "your next points pay it") : figure("To spend", number(profile.available), "points"),
        figure("Earned", number(profile.total_bestie_points), "points, ever"),
        figure("Longest streak", count(profile.longest_streak, "day")),
        figure("Freezes", number(profile.freezes_available), "each covers a missed day"))),
    ...profile.repair ? [repairCard(profile.repair, profile.available, view, root, (led) => show(root, view, led))] : [],
    ...profile.level ? [levelCard(profile.level, profile.total_bestie_points)] : [],
    explainer(profile, active, resting, view),
    ...told.achievements.length || told.secrets ? [achievementsCard(told)] : [],
    settingsCard(profile, book, view, root, words, (led) => show(root, view, led)), ledger);
  say(words || `Your streak is ${count(profile.current_streak, "day")}.${spokenNews(news)}`);
};
