// Shows the achievements of the book, and the streaks that the book declares.

import { get, part } from "./api.js";
import { STATUS, count, dayName, h, moment, number, say, spoken } from "./dom.js";

const PER = { day: ["day", "days"], week: ["week", "weeks"], month: ["month", "months"] };
const goalStatus = (status, one) => ({
  active: `This ${one} counts already.`,
  at_risk: `This ${one} does not count yet.`,
  broken: `It ended. The next ${one} that counts begins a new one.`,
  none: `The first ${one} that counts begins it.`,
})[status];
const lower = (text) => spoken(text).toLowerCase();
const exact = (value) => new Intl.NumberFormat("en", { maximumFractionDigits: 3 }).format(value);

// Says in words what a condition of an achievement counts, before and behind the numbers.
const counted = (condition) => ({
  points_earned: () => ["Points earned"],
  count: () => [spoken(condition.event_type), condition.needs === 1 ? "time" : "times"],
  sum: () => [`${spoken(condition.property)} in ${lower(condition.event_type)}`],
  streak: () => [streakTitle(condition.streak), "in a row"],
})[condition.counts]();
const streakTitle = (name) => name === "daily" ? "Every day" : spoken(name);

// A picture from the book; none where it cannot be loaded. Its host learns nothing of the page.
export const picture = ({ image_url: url }) => url
  ? h("img", { class: "badge", src: url, alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer", onerror: (event) => event.target.remove() })
  : null;

// A bar of how far one is. The words beside it say the same.
export const progress = (have, needs, words, unit = "") => h("div", { class: "progress" },
  h("p", {}, `${words}: ${exact(Math.min(have, needs))} of ${exact(needs)} ${unit}`.trimEnd()),
  h("progress", { max: needs, value: Math.min(have, needs), "aria-label": words }));

export const title = (achievement) => achievement.title || spoken(achievement.name);

// How far one is: 0 for not begun, 1 for earned.
const nearness = ({ needs, conditions }) => {
  const shares = conditions.map((each) => Math.min(1, each.have / each.needs));
  return needs === "all" ? shares.reduce((sum, each) => sum + each, 0) / shares.length : Math.max(...shares);
};
const stepsMissing = ({ needs, conditions }) => {
  const steps = conditions.map((each) => Math.max(0, each.needs - each.have));
  return needs === "all" ? steps.reduce((sum, each) => sum + each, 0) : Math.min(...steps);
};
// What is earned, the newest first; and what is not, the nearest first, and of two as near the one with the fewest steps.
export const newest = (achievements) => achievements.filter((each) => each.achieved)
  .sort((a, b) => (b.achieved_at ?? "").localeCompare(a.achieved_at ?? ""));
export const nearest = (achievements) => achievements.filter((each) => !each.achieved)
  .sort((a, b) => nearness(b) - nearness(a) || stepsMissing(a) - stepsMissing(b));

// What an achievement pays, or has paid.
const bonus = ({ points, paid }) => points > 0 && h("span", { class: "note" }, paid ? `${number(paid)} points paid` : `pays ${number(points)} points`);

const earned = (achievement) => h("li", {}, picture(achievement), h("strong", {}, title(achievement)),
  h("span", { class: "note" }, achievement.achieved_at ? `earned ${moment(achievement.achieved_at)}` : "earned"), bonus(achievement));

export const open = (achievement) => h("li", {}, picture(achievement), h("strong", {}, title(achievement)), bonus(achievement),
  achievement.conditions.length > 1 && h("span", { class: "note" }, achievement.needs === "all" ? "All of these:" : "Any of these:"),
  achievement.conditions.map((each) => progress(each.have, each.needs, ...counted(each))));

const section = (id, name, items, empty) => h("section", { class: "card", "aria-labelledby": id },
  h("h2", { id }, name), items.length ? h("ul", { class: "texts" }, items) : h("p", { class: "note" }, empty));

// Says in words what a period needs.
const needed = (period) => ({
  active_days: () => "Active days",
  events: () => "Events",
  sum: () => spoken(period.property),
})[period.counts]();

const goal = (streak) => {
  const [one, many] = PER[streak.per];
  const { period } = streak;
  return h("li", {},
    h("strong", {}, streakTitle(streak.name)),
    h("span", {}, `${count(streak.current_streak, one, many)} in a row, ${number(streak.longest_streak)} at best`),
    h("span", { class: "note" }, streak.per === "day" ? STATUS[streak.status] : goalStatus(streak.status, one)),
    period?.counts && progress(period.have, period.needs, needed(period)),
    period && !period.counts && h("span", { class: "note" }, `It is asked for from the next ${one} on.`),
    period?.counts && streak.per !== "day" && h("span", { class: "note" }, `This ${one} ends with ${dayName(period.last)}`));
};

export const show = async (root, view) => {
  const user = `v1/users/${part(view.person.user)}`;
  const [{ achievements, secrets = 0 }, { streaks }] = await Promise.all([
    get(`${user}/achievements`, view.signal), get(`${user}/streaks`, view.signal),
  ]);
  const [done, missing] = [newest(achievements), nearest(achievements)];
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Achievements"),
    section("earned-title", "Earned", done.map(earned), achievements.length ? "None yet." : "There are none to earn right now."),
    ...missing.length ? [section("open-title", "Still to earn", missing.map(open), "")] : [],
    ...secrets ? [h("p", { class: "note" }, `And ${count(secrets, "secret one")}.`)] : [],
    section("streaks-title", "Streaks", streaks.map(goal), ""));
  say(`${count(done.length, "achievement")} of ${number(achievements.length + secrets)} earned.`);
};
