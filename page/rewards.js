// Shows what points can be spent on, redeems it, and tells what has been redeemed.

import { get, part } from "./api.js";
import { balanceCard } from "./balance.js";
import { agreement, count, h, moment, number, say, spoken, table, trouble } from "./dom.js";
import { isOpen, redeem } from "./redeem.js";

const SHOWN = 20;
const REDEEMED_SHOWN = 10;
const FULFILMENT = { requested: "On its way", fulfilled: "Yours", failed: "Failed, points are back", reversed: "Undone, points are back" };

// What people call a reward, or one that was redeemed.
const nameOf = (reward) => reward.title ?? spoken(reward.reward);

// The picture of a reward: its first letter, where there is none or it cannot be loaded. Its host learns nothing of the page.
const letter = (reward) => h("div", { class: "letter", "aria-hidden": "true" }, nameOf(reward).slice(0, 1));
const picture = (reward) => reward.image_url
  ? h("img", { src: reward.image_url, alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer", onerror: (event) => event.target.replaceWith(letter(reward)) })
  : letter(reward);

// What a person could spend if there were no debt: below 0 where there is one.
const funds = (balance) => balance.balance - balance.held;

// Says why a reward cannot be had now; null if it can.
const obstacle = (reward, balance) => {
  if (reward.left === 0) return "Nothing is left.";
  if (reward.left_for_user === 0) return "You have as many as one person may have.";
  const missing = reward.price_points - funds(balance);
  return missing > 0 ? `${count(missing, "point")} missing.` : null;
};

const facts = (reward) => [
  `from ${spoken(reward.brand.replaceAll("-", " "))}`,
  reward.left > 0 && `about ${number(reward.left)} left`,
  reward.left_for_user > 0 && `${number(reward.left_for_user)} more for you`,
  reward.valid_until && `until ${moment(reward.valid_until)}`,
].filter(Boolean).join(", ");

const agreed = (reward, root) =>
  agreement(root, `Redeem ${nameOf(reward)} for ${count(reward.price_points, "point")}?`, "The points are spent at once.", "Yes, redeem");

const outcome = (entry, reward) => entry.duplicate
  ? `Your earlier try had arrived: ${nameOf(reward)} was redeemed once, on ${moment(entry.created_at)}.`
  : `Redeemed: ${nameOf(reward)} for ${count(-entry.points, "point")}.`;

const failure = (error) => error.unknown
  ? "The answer was lost, so this may have been redeemed. Press again: it is redeemed once."
  : error.message;

// The card of a reward. fill: shows the reward and the balance as they are now; the button keeps the keyboard.
const card = (first, shop) => {
  const id = `reward-${first.reward}`;
  const title = h("h3", { id, tabindex: "-1" }, nameOf(first));
  const description = first.description ? h("p", { class: "description" }, first.description) : null;
  const price = h("p", { class: "price" });
  const about = h("p", { class: "about" });
  const why = h("p", { class: "note" });
  const told = h("div", { class: "told", "aria-live": "polite" });
  const button = h("button", { type: "button", class: "main", "aria-label": `Redeem ${nameOf(first)}`, onclick: () => press() }, "Redeem");
  const made = { reward: first.reward };
  let reward = first;
  let busy = false;
  made.fill = (now, balance) => {
    reward = now;
    price.textContent = count(reward.price_points, "point");
    about.textContent = facts(reward);
    // A press without an answer can always be repeated: it may have spent the points that are missing now.
    const open = isOpen(shop.user, reward.reward);
    why.textContent = open && !busy ? "Your last try has had no answer. Press again to hear of it." : obstacle(reward, balance) ?? "";
    why.hidden = !why.textContent;
    const gone = !open && obstacle(reward, balance) !== null;
    if (gone && button === document.activeElement) title.focus();
    button.hidden = gone;
  };
  const press = async () => {
    if (busy || !await agreed(reward, shop.root)) return;
    busy = true;
    button.setAttribute("aria-disabled", "true");
    told.replaceChildren(h("p", { class: "note" }, "Redeeming ..."));
    let words;
    try {
      words = h("p", { class: "gained" }, outcome(await redeem(shop.user, reward.reward, reward.price_points, shop.signal), reward));
    } catch (error) {
      if (shop.signal.aborted) return;
      words = h("p", { class: "trouble" }, failure(error));
    }
    busy = false;
    button.removeAttribute("aria-disabled");
    await shop.refresh(made).catch(() => {});
    told.replaceChildren(words);
  };
  made.node = h("article", { class: "card reward", "aria-labelledby": id }, picture(first), title, description, price, about, why, button, told);
  return made;
};

const redeemed = (found) => h("section", { class: "card", "aria-labelledby": "redeemed-title" },
  h("h2", { id: "redeemed-title" }, "Redeemed"),
  table("Rewards that you have redeemed", ["Reward", "Points", "State"], found.map((each) => [
    h("span", {}, nameOf(each), h("small", {}, moment(each.created_at))), number(each.price_points), FULFILMENT[each.fulfilment],
  ]), "Nothing yet."));

export const show = async (root, view) => {
  const user = view.person.user;
  const path = `v1/users/${part(user)}`;
  const shop = { user, root, signal: view.signal };
  const list = h("div", { class: "rewards-grid" });
  const more = h("button", { type: "button", class: "quiet", hidden: true }, "Show more");
  const [purse, history] = [h("div", {}), h("div", {})];
  const offered = new Map(); // reward id -> the reward as it was last read, and its card; in the service's order
  let balance, cursor = null;
  const account = async () => {
    const [told, past] = await Promise.all([
      get(`${path}/balance`, view.signal), get(`${path}/redemptions?limit=${REDEEMED_SHOWN}`, view.signal),
      view.refreshFigures(view.signal),
    ]);
    balance = told;
    purse.replaceChildren(balanceCard(told));
    history.replaceChildren(redeemed(past.redemptions));
  };
  const load = async () => {
    const page = await get(`${path}/rewards?limit=${SHOWN}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`, view.signal);
    for (const reward of page.rewards) {
      const made = card(reward, shop);
      offered.set(reward.reward, { reward, made });
      made.fill(reward, balance);
    }
    const byPrice = [...offered.values()].sort((one, other) => one.reward.price_points - other.reward.price_points);
    list.replaceChildren(...byPrice.map((each) => each.made.node));
    cursor = page.cursor;
    more.hidden = !cursor;
    if (!offered.size) list.append(h("p", { class: "note" }, "Nothing is offered right now."));
  };
  // Reads anew what a press has changed: the account, and this one reward, by the cursor of the one before.
  shop.refresh = async (made) => {
    const names = [...offered.keys()];
    const before = names[names.indexOf(made.reward) - 1];
    const [page] = await Promise.all([
      get(`${path}/rewards?limit=1${before ? `&cursor=${encodeURIComponent(before)}` : ""}`, view.signal), account(),
    ]);
    const now = page.rewards.find((each) => each.reward === made.reward);
    if (now) offered.get(made.reward).reward = now;
    for (const each of offered.values()) each.made.fill(each.reward, balance);
  };
  more.addEventListener("click", () => load().catch((error) => { if (!view.signal.aborted) list.append(trouble(error)); }));
  await account();
  await load();
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Rewards"), purse,
    h("section", { class: "stack", "aria-labelledby": "offered-title" }, h("h2", { id: "offered-title" }, "What you can get"), list, more), history);
  say(`${count(balance.available, "point")} to spend.`);
};
