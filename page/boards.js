// Shows the leaderboards: streaks, points, answers.

import { get, part } from "./api.js";
import { h, number, relative, table, trouble } from "./dom.js";

const REGIONS = [
  "global", "africa", "america", "antarctica", "arctic", "asia", "atlantic", "australia", "europe", "indian", "pacific",
  "other",
];
const TOP = 10;

const rows = (entries, mine) => entries.map((entry) => [
  h("span", { class: "rank" }, number(entry.rank)),
  mine(entry) ? h("strong", {}, `${entry.name} (you)`) : entry.name,
  number(entry.score),
]);

const board = (title, heads, entries, mine, footer) => h("section", { class: "card" },
  h("h2", {}, title),
  table(`Leaderboard: ${title}`, heads, rows(entries, mine), "Nobody is on this board yet."),
  footer && h("p", { class: "note" }, footer));

const place = (rank) => rank?.rank ? `You are number ${number(rank.rank)}.` : "You are not on this board yet.";

const ofUsers = async (name, title, unit, region, view) => {
  const query = `region=${part(region)}`;
  const [top, rank] = await Promise.all([
    get(`v1/leaderboards/${name}?${query}&limit=${TOP}`, view.signal),
    get(`v1/leaderboards/${name}/users/${part(view.person.user)}?${query}`, view.signal).catch(() => null),
  ]);
  const entries = top.entries.map((entry) => ({ ...entry, name: entry.alias }));
  const footer = `${place(rank)}${rank?.alias ? ` Others see you as ${rank.alias}.` : ""} As of ${relative(top.as_of)}.`;
  return board(title, ["Rank", "Who", unit], entries, (entry) => entry.is_me, footer);
};

const ofAnswers = async (view) => {
  const [top, own] = await Promise.all([
    get(`v1/stats?limit=${TOP}`, view.signal),
    get("v1/stats/me", view.signal).catch(() => null),
  ]);
  const entries = top.entries.map((entry) => ({ ...entry, name: entry.alias, score: entry.points }));
  const note = own?.alias ? `You are ${own.alias} here: nobody's name is shown.` : "Nobody's name is shown here.";
  return board("Answers", ["Rank", "Who", "Score"], entries, (entry) => entry.is_me, note);
};

export const show = async (root, view) => {
  const grid = h("div", { class: "boards-grid" });
  const select = h("select", { id: "region", onchange: () => fill().catch(() => {}) },
    REGIONS.map((region) => h("option", { value: region }, region === "global" ? "Everywhere" : region[0].toUpperCase() + region.slice(1))));
  const fill = async () => {
    const failed = (error) => { if (view.signal.aborted) throw error; return trouble(error); };
    grid.replaceChildren(...await Promise.all([
      ofUsers("streaks", "Streaks", "Days", select.value, view).catch(failed),
      ofUsers("points", "Points", "Points", select.value, view).catch(failed),
      ofAnswers(view).catch(failed),
    ]));
  };
  await fill();
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Leaderboards"),
    h("p", { class: "row" }, h("label", { for: "region" }, "Region"), select), grid);
};
