// Shows a person's friends: the streak in common with each, requests, and the person among them.

import { ask, get, part } from "./api.js";
import { agreement, count, dayName, h, number, table, trouble } from "./dom.js";

const HEADS = ["Friend", "Streak in common", "Today", "Friends since", ""];
const nameOf = ({ alias, user_id: id }) => h("bdi", {}, alias ?? id);

// Says who was active on the pair's today.
const today = ({ active_today: you, friend_active_today: friend, at_risk: atRisk }) => {
  if (you && friend) return "Both were active.";
  if (!you && !friend) return atRisk ? "Both must still be active." : "Nobody was active yet.";
  if (!atRisk) return "Nothing is missing.";
  return you ? "You were active, your friend not yet." : "Your friend was active, you not yet.";
};

const board = ({ entries }) => table("You among your friends", ["Rank", "Who", "Streak"], entries.map((entry) => [
  number(entry.rank),
  h("span", { class: entry.is_me ? "own" : "" }, nameOf(entry), entry.is_me && " (you)"),
  count(entry.score, "day"),
]), "Nobody is on it.");

export const show = async (root, view) => {
  const path = `v1/users/${part(view.person.user)}`;
  const told = h("div", { "aria-live": "polite", tabindex: "-1" });
  const say = (words) => told.replaceChildren(h("p", { class: "gained" }, words));
  // Changes what there is between two users, shows the view anew, and says what has happened.
  const change = (method, kind, other, words) => async () => {
    try {
      const tie = await ask(method, `${path}/${kind}/${part(other)}`, { repeatable: true, signal: view.signal });
      await draw();
      if (document.activeElement === document.body) told.focus(); // what the keyboard was at is gone
      say(typeof words === "function" ? words(tie) : words);
    } catch (error) {
      if (!view.signal.aborted) told.replaceChildren(trouble(error));
    }
  };
  // With the name: of several rows each has such a button.
  const button = (label, row, onclick) => h("button", { type: "button", class: "quiet", "aria-label": `${label}: ${row.alias ?? row.user_id}`, onclick }, label);
  const end = (friend) => async () => {
    const sure = await agreement(root, "End it?", "Your streak in common ends. You may become friends again, and begin a new one.", "Yes, end it");
    if (sure) await change("DELETE", "friends", friend.user_id, "You are no longer friends.")();
  };
  const asked = (tie) => tie.state === "friend" ? "You are friends now." : "Your request waits for an answer.";
  const list = (heading, rows, buttons) => rows.length > 0 && [
    h("h2", {}, heading), h("ul", { class: "texts" }, rows.map((row) => h("li", { class: "row" }, nameOf(row), " ", buttons(row)))),
  ];
  const id = h("input", { id: "friend", required: true, maxlength: 255, autocomplete: "off" });
  const form = h("form", { class: "row", onsubmit: async (event) => {
    event.preventDefault();
    const other = id.value.trim();
    if (other) await change("PUT", "friends", other, asked)();
    id.value = "";
  } }, h("label", { for: "friend" }, "Ask somebody, by user id"), id, h("button", { class: "quiet" }, "Ask"));
  const draw = async () => {
    const [shown, ranked] = await Promise.all([
      get(`${path}/friends`, view.signal),
      get(`${path}/friends/board`, view.signal).catch(() => null), // who has left the boards is on none
    ]);
    const rows = shown.friends.map((friend) => [
      nameOf(friend), count(friend.streak, "day"), today(friend), dayName(friend.since.slice(0, 10)), button("End", friend, end(friend)),
    ]);
    root.replaceChildren(
      h("h1", { tabindex: "-1" }, "Friends"),
      h("section", { class: "card" }, told,
        table("Your friends", HEADS, rows, "You have no friends here yet. When both of you have agreed, each day on which both are active counts."),
        form,
        list("They ask you", shown.requests, (row) => [
          button("Accept", row, change("PUT", "friends", row.user_id, asked)), button("Decline", row, change("DELETE", "friends", row.user_id, "Declined.")),
          button("Block", row, change("PUT", "blocked", row.user_id, "Blocked. You will not see requests any more."))]),
        list("You have asked", shown.asked, (row) => button("Take back", row, change("DELETE", "friends", row.user_id, "Taken back."))),
        list("Blocked", shown.blocked, (row) => button("Unblock", row, change("DELETE", "blocked", row.user_id, "They may ask you again.")))),
      rows.length && ranked ? h("section", { class: "card" }, h("h2", {}, "You among your friends"), board(ranked)) : "");
  };
  await draw();
};
