// Shows a year: which dates were active, which were covered, and which were missed.

import { h } from "./dom.js";
import { element, source } from "./source.js";

export const show = async (root, view) => {
  const calendar = element("calendar", { year: location.hash.split("/")[2] ?? "", weeks: true }, { client: source(view) });
  calendar.addEventListener("streakline-period", ({ detail }) => history.replaceState(null, "", `#/calendar/${detail.period}`));
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Calendar"), h("div", { class: "card" }, calendar));
  await calendar.ready;
};
