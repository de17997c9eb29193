// Offers to repair the run that has just broken.

import { agreement, count, dayName, h } from "./dom.js";
import { isOpen, once } from "./redeem.js";

const REPAIR = "a repair"; // what a press asks for, beside the ids of rewards, which have no blank

const days = (dates) => dates.map((date) => dayName(date)).join(" and ");

// Returns the card. repair: as the profile has it. available: points that can be spent. again: shows the view anew, with words.
export const repairCard = (repair, available, view, root, again) => {
  const user = view.person.user;
  const price = count(repair.price_points, "point");
  const told = h("div", { "aria-live": "polite" });
  let busy = false;
  const press = async () => {
    if (busy) return;
    busy = true;
    try {
      const agreed = isOpen(user, REPAIR)
        || await agreement(root, "Repair your streak?", `It covers ${days(repair.dates)}, for ${price}. If you were active after all, the points come back.`, "Yes, repair it");
      if (agreed) {
        const repaired = await once(user, REPAIR, "streak/repair", { price_points: repair.price_points }, view.signal);
        await again(`Your streak is repaired, for ${count(repaired.price_points, "point")}.`);
      }
    } catch (error) {
      if (!view.signal.aborted) told.replaceChildren(h("p", { class: "trouble" }, error.unknown
        ? "The answer was lost, so it may have happened. Press again: it happens once."
        : error.message));
    }
    busy = false;
  };
  return h("section", { class: "card", "aria-labelledby": "repair-title" },
    h("h2", { id: "repair-title" }, "Repair your streak"), told,
    h("p", {}, `You missed ${days(repair.dates)}. Until ${dayName(repair.until)} you can repair that, for ${price}.`),
    available < repair.price_points && h("p", { class: "note" }, `You have ${count(available, "point")}.`),
    h("p", {}, h("button", { type: "button", class: "main", disabled: available < repair.price_points, onclick: press }, `Repair it for ${price}`)));
};
