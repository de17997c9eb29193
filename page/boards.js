// Shows the league and the leaderboards: streaks, points, answers.

import { get } from "./api.js";
import { h, trouble } from "./dom.js";
import { leagueCard } from "./league.js";
import { element, source } from "./source.js";

const REGIONS = [
  "global", "africa", "america", "antarctica", "arctic", "asia", "atlantic", "australia", "europe", "indian", "pacific",
  "other",
];
const TOP = 10;

const card = (...children) => h("section", { class: "card" }, ...children);

const ofAnswers = async (view) => {
  const [top, own] = await Promise.all([
    get(`v1/stats?limit=${TOP}`, view.signal),
    get("v1/stats/me", view.signal).catch(() => null),
  ]);
  const entries = top.entries.map((entry) => ({ ...entry, score: entry.points }));
  const note = own?.alias ? `You are ${own.alias} here. Answers are kept apart from accounts, so it is not your name on the other boards.` : "Nobody's name is shown here.";
  return card(element("leaderboard", { heading: "Answers", score: "Score" }, { data: { entries } }), h("p", { class: "note" }, note));
};

export const show = async (root, view) => {
  const client = source(view);
  const boards = [["streaks", "Streaks"], ["points", "Points"]]
    .map(([board, heading]) => element("leaderboard", { board, heading, limit: TOP }, { client }));
  const select = h("select", { id: "region", onchange: () => boards.forEach((each) => each.setAttribute("region", select.value)) },
    REGIONS.map((region) => h("option", { value: region }, region === "global" ? "Everywhere" : region[0].toUpperCase() + region.slice(1))));
  const grid = h("div", { class: "two" }, boards.map((each) => card(each)));
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Leaderboards"),
    h("p", { class: "row" }, h("label", { for: "region" }, "Region"), select),
    grid);
  const league = await leagueCard(view).catch((error) => {
    if (view.signal.aborted) throw error;
    return card(trouble(error));
  });
  if (league) grid.before(league);
  grid.append(await ofAnswers(view).catch((error) => {
    if (view.signal.aborted) throw error;
    return card(trouble(error));
  }));
  await Promise.all(boards.map((each) => each.ready));
};
