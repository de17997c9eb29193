// Lets a person take a freeze, pause the streak, choose rest days, and say in which time zone dates are and under which name the boards
// show them.

import { ask, part } from "./api.js";
import { agreement, count, dayName, h, number } from "./dom.js";
import { isOpen, once } from "./redeem.js";

const FREEZE = "a freeze"; // what a press asks for, beside the ids of rewards, which have no blank

const cost = ({ free_a_month: free, price_points: price }) => [
  free > 0 && `${number(free)} a month ${free === 1 ? "is" : "are"} free.`,
  price > 0 ? `${free > 0 ? "After that each" : "It"} costs ${count(price, "point")}.` : free > 0 && "After that there are none.",
].filter(Boolean).join(" ");

const lasts = ({ first, last }) => first === last ? dayName(first) : `${dayName(first)} to ${dayName(last)}`;

const zones = (chosen) => {
  const known = Intl.supportedValuesOf?.("timeZone") ?? [];
  return known.includes(chosen) ? known : [chosen, ...known];
};

const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const weekdayName = (name) => dayName(`2024-01-0${WEEKDAYS.indexOf(name) + 1}`, { weekday: "long" }); // it began on a Monday
const rests = (names) => names.length ? names.map(weekdayName).join(" and ") : "no day";

// Returns the choice of rest days; nothing where the book lets nobody choose. save: sends the names of the chosen weekdays.
const restDays = (profile, most, save) => {
  if (!most) return [];
  const chosen = profile.rest_days_chosen ?? { rest_days: [], from: profile.as_of };
  const boxes = WEEKDAYS.map((name) => h("input", { type: "checkbox", value: name, checked: chosen.rest_days.includes(name) }));
  const full = () => {
    const taken = boxes.filter((box) => box.checked).length;
    for (const box of boxes) box.disabled = taken >= most && !box.checked;
  };
  full();
  return [
    h("h3", {}, "Rest days"),
    h("p", { class: "note" }, chosen.from > profile.as_of
      ? `From ${dayName(chosen.from)} on you rest on ${rests(chosen.rest_days)}.`
      : `A rest day without activity is no miss. Choose up to ${number(most)}, once in 28 days. They count from the day after tomorrow at the latest.`),
    h("form", { class: "row", onchange: full, onsubmit: save(() => boxes.filter((box) => box.checked).map((box) => box.value)) },
      ...boxes.map((box) => h("label", {}, box, ` ${weekdayName(box.value)}`)), h("button", { class: "quiet" }, "Choose")),
  ];
};

// Returns the card. book: the book in force. words: what the last press has led to. again: shows the view anew, with words.
export const settingsCard = (profile, book, view, root, words, again) => {
  const user = view.person.user;
  const path = `v1/users/${part(user)}`;
  const told = h("div", { "aria-live": "polite" }, words && h("p", { class: "gained", tabindex: "-1" }, words));
  let busy = false;
  // Does what a press asks for. done: returns the words for what it has led to.
  const press = (work, done) => async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    try {
      const answer = await work(event);
      if (answer) await again(done(answer));
    } catch (error) {
      if (!view.signal.aborted) told.replaceChildren(h("p", { class: "trouble" }, error.unknown
        ? "The answer was lost, so it may have happened. Press again: it happens once."
        : error.message));
    }
    busy = false;
  };
  const send = (method, where, body) => ask(method, `${path}/${where}`, { body, repeatable: true, signal: view.signal });
  const takeFreeze = press(
    async () => isOpen(user, FREEZE) || await agreement(root, "Take a freeze?", `It covers a missed day by itself. ${cost(book.freezes)}`, "Yes, take it")
      ? once(user, FREEZE, "freezes", {}, view.signal) : null,
    (entry) => entry.points ? `You have a freeze more, for ${count(-entry.points, "point")}.` : "You have a freeze more.",
  );
  const [first, last] = ["first", "last"].map((name) => h("input", { type: "date", id: `pause-${name}`, min: profile.as_of, value: profile.as_of, required: true }));
  const zone = h("select", { id: "zone" }, zones(profile.timezone).map((name) => h("option", { value: name, selected: name === profile.timezone }, name.replaceAll("_", " "))));
  const alias = h("input", { id: "alias", value: profile.alias ?? "", required: true, maxlength: 40, autocomplete: "nickname" });
  const named = (answer) => `On the boards you are ${answer.shown_as}.`;
  const rename = (to) => press(() => send("PUT", "alias", { alias: to() }), named);
  const card = h("section", { class: "card settings", "aria-labelledby": "settings-title" },
    h("h2", { id: "settings-title" }, "Settings"), told,
    h("h3", {}, "Freezes"),
    h("p", {}, `You have ${count(Math.max(0, profile.freezes_available), "freeze")} of at most ${number(book.freezes.held_max)}. `,
      h("button", { type: "button", class: "quiet", onclick: takeFreeze }, "Take a freeze")),
    h("h3", {}, "Pauses"),
    profile.pauses.length
      ? h("ul", { class: "texts" }, profile.pauses.map((pause) => h("li", {}, lasts(pause))))
      : h("p", { class: "note" }, "None. A paused day is no miss: for holidays, or when you are ill."),
    h("form", { class: "row", onsubmit: press(() => send("POST", "pauses", { first: first.value, last: last.value }), () => `Your streak is paused: ${lasts({ first: first.value, last: last.value })}.`) },
      h("label", { for: "pause-first" }, "From"), first, h("label", { for: "pause-last" }, "to"), last, h("button", { class: "quiet" }, "Pause")),
    ...restDays(profile, book.daily?.rest_days_chosen, (days) => press(
      () => send("PUT", "rest-days", { rest_days: days() }),
      (answer) => `You rest on ${rests(answer.rest_days)}${answer.from ? `, from ${dayName(answer.from)} on` : ""}.`)),
    h("h3", {}, "Time zone"),
    h("form", { class: "row", onsubmit: press(() => send("PUT", "timezone", { timezone: zone.value }), (answer) => `Your days are days of ${answer.timezone.replaceAll("_", " ")} from now on.`) },
      h("label", { for: "zone" }, "Your days are days of"), zone, h("button", { class: "quiet" }, "Set")),
    h("h3", {}, "Name on the boards"),
    h("form", { class: "row", onsubmit: rename(() => alias.value.trim()) },
      h("label", { for: "alias" }, "Name"), alias, h("button", { class: "quiet" }, "Set"),
      profile.alias && h("button", { type: "button", class: "quiet", onclick: rename(() => null) }, "Use a made-up name")));
  if (words) queueMicrotask(() => told.firstChild.focus({ preventScroll: true }));
  return card;
};
