// Shows a person's league: the cohort with who goes up and down, and what the last week led to.

import { ask, get, part } from "./api.js";
import { agreement, count, h, number, table, trouble } from "./dom.js";

// By zone: the sign, what a member does as of now, and what the user did.
const ZONES = {
  up: ["▲", "goes up", "You went up."],
  stay: ["", "stays", "You stayed."],
  down: ["▼", "goes down", "You went down."],
};
const zoneOf = (name) => ZONES[name] ?? ["", name, ""]; // a zone that the server has and this page does not know
const HEADS = ["Rank", "Who", "Points", "After the week"];
const closing = new Intl.DateTimeFormat("en", { weekday: "long", hour: "2-digit", minute: "2-digit" });

const zone = (name) => h("span", { class: `zone ${name}` }, h("span", { "aria-hidden": "true" }, `${zoneOf(name)[0]} `), zoneOf(name)[1]);

const row = (entry) => [
  number(entry.rank),
  h("span", { class: entry.is_me ? "own" : "" }, h("bdi", {}, entry.alias), entry.is_me && " (you)"),
  number(entry.points),
  zone(entry.zone),
];

const outcome = (last) => h("p", { class: "note" },
  `${last.week}: number ${number(last.rank)} of ${number(last.members)} in ${last.division}, with ${count(last.points, "point")}. ${zoneOf(last.zone)[2]}`);

const standing = ({ taking_part: takesPart, league }) => {
  if (!takesPart) return [h("p", {}, "You have left the leagues.")];
  if (!league) return [h("p", {}, "You are in no league this week. Your next points put you into one, unless you have left the boards.")];
  const ends = league.state === "open" ? `It closes on ${closing.format(new Date(league.closes_at))}.` : "It has just closed.";
  return [
    table(`League of ${league.week}`, HEADS, league.entries.map(row), "Nobody is in it yet."),
    h("p", { class: "note" }, `${ends} Who goes up and down is as of now. A league changes no points.`),
  ];
};

// Returns the card of a person's league; null if there is none.
export const leagueCard = async (view) => {
  const path = `v1/users/${part(view.person.user)}/league`;
  const card = h("section", { class: "card league", "aria-labelledby": "league-title" });
  const draw = async () => {
    const shown = await get(path, view.signal);
    const turn = async () => {
      const sure = !shown.taking_part || await agreement(card, "Leave the leagues?",
        "Nobody sees you there any more. Who comes back after this week begins in the lowest division.", "Yes, leave");
      if (!sure) return;
      try {
        await ask("PUT", path, { body: { taking_part: !shown.taking_part }, repeatable: true, signal: view.signal });
        await draw();
        card.querySelector("button").focus();
      } catch (error) {
        if (!view.signal.aborted) told.replaceChildren(trouble(error));
      }
    };
    const { name, number: place, of } = shown.division, told = h("div", {});
    card.replaceChildren(
      h("h2", { id: "league-title" }, `League: ${name}`),
      h("p", { class: "note" }, `Division ${number(place)} of ${number(of)}, from the lowest.`),
      ...standing(shown),
      shown.last && outcome(shown.last),
      told,
      h("p", {}, h("button", { type: "button", class: "quiet", onclick: turn }, shown.taking_part ? "Leave the leagues" : "Take part again")),
    );
  };
  try {
    await draw();
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
  return card;
};
