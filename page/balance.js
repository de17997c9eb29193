// Shows what of a person's points can be spent, what is held, what is owed, and what expires when.

import { count, h, moment, number, relative, spoken, table } from "./dom.js";

const DATES_SHOWN = 8;

const figure = (name, value, note) => h("div", {}, h("dt", {}, name), h("dd", {}, value), note && h("dd", { class: "note" }, note));

const held = (holds) => holds.length > 0 && h("ul", { class: "texts" }, holds.map((hold) => h("li", {},
  `${count(hold.points, "point")} held for ${spoken(hold.reward_id).toLowerCase()} until ${moment(hold.until)}`)));

const later = (dates) => dates.length > 0 && h("p", { class: "note" },
  `Then ${count(dates.reduce((sum, each) => sum + each.points, 0), "point")} more, the last on ${moment(dates.at(-1).at)}.`);

// Returns the card of a balance, as GET /balance tells it.
export const balanceCard = (told) => h("section", { class: "card", "aria-labelledby": "balance-title" },
  h("h2", { id: "balance-title" }, "Your points"),
  h("dl", { class: "tiles" },
    figure("To spend", number(told.available)),
    told.held > 0 && figure("Held", number(told.held), "reserved for you"),
    told.debt > 0 && figure("Owed", number(told.debt), "your next points pay it")),
  told.debt > 0 && h("p", { class: "debt" },
    `You owe ${count(told.debt, "point")}, because points were taken back after you had spent them. What you earn next pays this. You can spend again after that.`),
  held(told.holds),
  told.expiring.length > 0 && h("h3", {}, "Expiring points"),
  told.expiring.length > 0 && table("Points that expire", ["When", "Points"], told.expiring.slice(0, DATES_SHOWN).map((each) => [
    h("span", {}, moment(each.at), h("small", {}, relative(each.at))), number(each.points),
  ]), ""),
  later(told.expiring.slice(DATES_SHOWN)),
  !told.expiring.length && told.available > 0 && h("p", { class: "note" }, "None of them expires."));
