// Tells what a person has reached since this browser last showed it: a level, achievements.

import { picture, title } from "./achievements.js";
import { h } from "./dom.js";
import { device } from "./session.js";

const place = (user) => `streakline.seen.${user}`;
const seenBy = (user) => { try { return JSON.parse(device.getItem(place(user))); } catch { return null; } };

// Returns what is new, and remembers that it was shown; nothing is new at the first visit. A level is new if the points
// that were seen had not reached it: a book that moves its levels is no news.
export const newsOf = (user, { level, total_bestie_points: points }, achievements) => {
  const seen = seenBy(user);
  const earned = achievements.filter((each) => each.achieved);
  device.setItem(place(user), JSON.stringify({ points, earned: earned.map((each) => each.name) }));
  if (!seen) return [];
  const isNew = level && seen.points < level.from;
  return [...isNew ? [{ ...level, kind: "level" }] : [], ...earned.filter((each) => !seen.earned.includes(each.name))];
};

const words = (each) => each.kind === "level" ? `New level: ${title(each)}` : `New achievement: ${title(each)}`;
export const spokenNews = (news) => news.map((each) => ` ${words(each)}.`).join("");

// A quiet celebration: it appears once, moves only where motion is wanted, and waits for nobody.
export const newsCard = (news) => h("section", { class: "card news", "aria-label": "New" },
  h("ul", {}, news.map((each) => h("li", {}, picture(each) ?? h("span", { class: "spark-sign", "aria-hidden": "true" }, "✦"), h("strong", {}, words(each))))));
