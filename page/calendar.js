// Shows a year: which dates were active, which were covered, and which were missed. A date that is chosen says why.

import { h } from "./dom.js";
import { explanation } from "./explain.js";
import { element, source } from "./source.js";

export const show = async (root, view) => {
  const calendar = element("calendar", { year: location.hash.split("/")[2] ?? "", weeks: true }, { client: source(view) });
  calendar.addEventListener("streakline-period", ({ detail }) => history.replaceState(null, "", `#/calendar/${detail.period}`));
  const { node, explain } = explanation(view, "Choose a date to see why it counts, or does not.");
  calendar.addEventListener("streakline-date", ({ detail }) => explain(detail.date));
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Calendar"), h("div", { class: "card" }, calendar, node));
  await calendar.ready;
};
