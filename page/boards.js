// Shows the league and the leaderboards: streaks, points, answers.

import { ask, get, part } from "./api.js";
import { byId, h, trouble } from "./dom.js";
import { leagueCard } from "./league.js";
import { element, source } from "./source.js";

const REGIONS = [
  "global", "africa", "america", "antarctica", "arctic", "asia", "atlantic", "australia", "europe", "indian", "pacific",
  "other",
];
const TOP = 10;
const NAMES = { week: "This week", month: "This month" };

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

// The boards of the book that the person is on: each with the rows around the person, and how long it goes on.
const ofBook = async (view, client, { groups }) => {
  const { boards } = await get("v1/boards", view.signal);
  return boards
    .filter(({ periods, group }) => periods.length && (!group || groups[group]))
    .map(({ board, per, group }) => {
      const heading = `${NAMES[per] ?? board}${group ? `: ${groups[group]}` : ""}`;
      return element("leaderboard", { board, heading, limit: TOP }, { client });
    });
};

// The person's switch. Who has left is on no list, but sees them. Drawn anew, the keyboard is at the switch again.
const leaving = (view, { hidden }, redraw) => {
  const turn = async () => {
    try {
      await ask("PUT", `v1/users/${part(view.person.user)}/boards`, { body: { hidden: !hidden }, repeatable: true, signal: view.signal });
      await redraw();
    } catch (error) {
      if (!view.signal.aborted) told.replaceChildren(trouble(error));
    }
  };
  const said = hidden ? "You have left the boards: nobody sees you there." : "Others see your name on the boards.";
  const told = h("div", {});
  return h("div", {}, told, h("p", { class: "note" }, said, " ",
    h("button", { type: "button", id: "leaving", class: "quiet", onclick: turn }, hidden ? "Come back" : "Leave the boards")));
};

export const show = async (root, view) => {
  const client = source(view);
  // A card that cannot be shown says why, and hides no other.
  const orTrouble = (promise, shown) => promise.catch((error) => {
    if (view.signal.aborted) throw error;
    return shown(trouble(error));
  });
  const own = await get(`v1/users/${part(view.person.user)}/boards`, view.signal);
  const periods = await orTrouble(ofBook(view, client, own), (words) => [words]);
  const boards = [["streaks", "Streaks"], ["points", "Points"]]
    .map(([board, heading]) => element("leaderboard", { board, heading, limit: TOP }, { client }));
  const select = h("select", { id: "region", onchange: () => boards.forEach((each) => each.setAttribute("region", select.value)) },
    REGIONS.map((region) => h("option", { value: region }, region === "global" ? "Everywhere" : region[0].toUpperCase() + region.slice(1))));
  const grid = h("div", { class: "two" }, [...periods, ...boards].map((each) => card(each)));
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Leaderboards"),
    h("p", { class: "row" }, h("label", { for: "region" }, "Region"), select),
    grid,
    leaving(view, own, async () => {
      await show(root, view);
      byId("leaving").focus();
    }));
  const { book } = await get("v1/rules", view.signal);
  const league = book.leagues && await orTrouble(leagueCard(view), card);
  if (league) grid.before(league);
  grid.append(await orTrouble(ofAnswers(view), card));
  await Promise.all([...periods, ...boards].map((each) => each.ready));
};
