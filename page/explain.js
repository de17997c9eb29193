// Says why a date counts, or does not.

import { get, part } from "./api.js";
import { count, dayName, h, moment, spoken, trouble } from "./dom.js";

const words = (told) => h("div", {},
  h("p", {}, h("strong", {}, `${dayName(told.date)} ${told.counts ? "counts" : "does not count"}: `), `${told.rule}.`),
  h("p", { class: "note" }, [
    told.counts && `${count(told.events_count, "event")}, ${count(told.points_earned, "point")}`,
    told.event && `first: ${spoken(told.event.event_type).toLowerCase()} at ${moment(told.event.occurred_at)}`,
    `read in ${told.zone}`,
    told.day_starts_at > "00:00" && `the day began at ${told.day_starts_at}`,
    told.streak_length > 0 && `streak ${count(told.streak_length, "day")} long that day`,
    told.freeze_used && "a freeze was used",
  ].filter(Boolean).join(" · ")));

// Returns {node, explain}: where the explanation stands, and what fetches the one of a date (2026-03-01).
export const explanation = (view, hint = "") => {
  const node = h("div", { class: "told", "aria-live": "polite" }, hint && h("p", { class: "note" }, hint));
  const explain = async (date) => {
    try {
      node.replaceChildren(words(await get(`v1/users/${part(view.person.user)}/streak/explain?date=${encodeURIComponent(date)}`, view.signal)));
      node.scrollIntoView({ block: "nearest" }); // on a phone it may be below what is seen
    } catch (error) {
      if (!view.signal.aborted) node.replaceChildren(trouble(error));
    }
  };
  return { node, explain };
};
