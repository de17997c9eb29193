// Shows the level of a person's points, and how far the next one is.

import { picture, progress, title } from "./achievements.js";
import { count, h } from "./dom.js";

// points: ever earned. level: as the profile has it; null if there is none.
export const levelCard = (level, points) => h("section", { class: "card level", "aria-labelledby": "level-title" },
  h("h2", { id: "level-title" }, "Level"),
  h("p", { class: "reached" }, picture(level), h("strong", {}, title(level))),
  level.next
    ? progress(points - level.from, level.next.from - level.from, `From ${title(level)} to ${title(level.next)}`, "points")
    : h("p", { class: "note" }, "It is the highest."),
  level.next && h("p", { class: "note" }, `${count(level.next.missing, "point")} until ${title(level.next)}.`));
