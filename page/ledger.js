// Shows what was earned and spent, by the day on which it happened, and why something earned nothing.

import { get, part } from "./api.js";
import { count, dayName, h, number, spoken, timeOfDay, trouble } from "./dom.js";

const ENTRIES = 15;
const KINDS = { EARN: "Earned", REDEEM: "Redeemed", REVERSE: "Given back", EXPIRE: "Expired", ADJUST: "Adjusted" };
const TAKEN = { CLAWBACK: "Taken back", RERATE: "Corrected" };
const FREEZES = { freeze_granted: "Streak freeze", freeze_revoked: "Streak freeze taken back", freeze_spent: "Streak freeze used", freeze_refunded: "Streak freeze given back" };

const REPAIRS = { freeze_granted: "Streak repaired", freeze_revoked: "Repair given back" };

const what = (entry) => (entry.reward_id === "streak_repair" && REPAIRS[entry.freeze] || FREEZES[entry.freeze])
  ?? (entry.kind in TAKEN ? `${TAKEN[entry.kind]}: ${spoken(entry.event_type ?? "points")}`
    : entry.kind === "REVERSE" ? `${KINDS.REVERSE}: ${spoken(entry.reward_id ?? "a reward")}`
    : spoken(entry.event_type ?? entry.reward_id ?? KINDS[entry.kind] ?? entry.kind));
const signed = (points) => points > 0 ? `+${number(points)}` : number(points).replace("-", "−");

const localDate = (instant) => {
  const at = new Date(instant);
  return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
};
const happened = (entry) => entry.occurred_at ?? entry.created_at;
const dayOf = (entry) => entry.activity_date ?? entry.freeze_date ?? localDate(happened(entry));

// Entries of 0 points that say the same are one row: a limit is often reached many times a day.
const rowsOf = (entries) => {
  const rows = new Map();
  for (const entry of entries) {
    const key = entry.points === 0 && !entry.freeze ? `${what(entry)} ${entry.reason}` : entry.entry_id;
    rows.set(key, [...rows.get(key) ?? [], entry]);
  }
  return [...rows.values()];
};

const row = (entries) => {
  const [entry] = entries;
  return h("tr", {},
    h("th", { scope: "row" }, h("span", {}, entries.length > 1 ? `${what(entry)}, ${number(entries.length)} times` : what(entry),
      h("small", {}, [
        entries.length === 1 && timeOfDay(happened(entry)),
        entry.reason,
        entry.isLate && `came late, on ${dayName(localDate(entry.created_at), { day: "numeric", month: "long" })}`,
      ].filter(Boolean).join(" · ")))),
    h("td", {}, signed(entry.points)), h("td", {}, entry.balanceThen === undefined ? "" : number(entry.balanceThen)));
};

const day = ([date, entries]) => h("tbody", {},
  h("tr", { class: "day" }, h("th", { scope: "rowgroup" }, dayName(date)),
    h("td", {}, signed(entries.reduce((sum, each) => sum + each.points, 0))), h("td", {})),
  rowsOf(entries).map(row));

// An entry is late if one of a later day was booked before it.
const markLate = (entries) => {
  let newest = "";
  for (const entry of entries.toReversed()) {
    entry.isLate = Boolean(entry.occurred_at) && dayOf(entry) < newest;
    newest = dayOf(entry) > newest ? dayOf(entry) : newest;
  }
};

// Compares entries by when they happened, the newest first.
const byTime = (one, other) => dayOf(other).localeCompare(dayOf(one)) || Date.parse(happened(other)) - Date.parse(happened(one));

// Returns the entries by when they happened, each with the points that were left after it, by all that is known today.
// all: in the order of booking, the newest first. What is not read yet (hasMore) happened before the oldest booking that
// is: an entry from before then has no such points.
export const inTime = (all, hasMore) => {
  markLate(all);
  const unread = hasMore ? all.at(-1).created_at : "";
  const isBeforeUnread = (entry) => Date.parse(happened(entry)) <= Date.parse(unread) || dayOf(entry) < localDate(unread);
  let balance = all[0]?.balance;
  return all.toSorted(byTime).map((entry) => {
    const balanceThen = unread && isBeforeUnread(entry) ? undefined : balance;
    balance -= entry.points;
    return { ...entry, balanceThen };
  });
};

// Returns the card of the ledger, with its newest entries.
export const ledgerCard = async (view) => {
  const path = `v1/users/${part(view.person.user)}/ledger?limit=${ENTRIES}`;
  const all = []; // in the order of booking, the newest first
  const place = h("div", {});
  const more = h("button", { type: "button", class: "quiet", onclick: () => load().catch((error) => { if (!view.signal.aborted) place.append(trouble(error)); }) }, "Show more");
  let cursor = null;
  const load = async () => {
    const page = await get(`${path}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`, view.signal);
    all.push(...page.entries.filter((entry) => entry.kind !== "OPEN" && entry.kind !== "SETTING"));
    cursor = page.cursor;
    more.hidden = !cursor;
    const days = Map.groupBy(inTime(all, Boolean(cursor)), dayOf);
    place.replaceChildren(days.size ? h("table", { class: "ledger" },
      h("caption", { class: "unseen" }, `Ledger: ${count(days.size, "day")}`),
      h("thead", {}, h("tr", {}, ["Entry", "Points", "Balance"].map((head) => h("th", { scope: "col" }, head)))),
      [...days].map(day)) : h("p", { class: "note" }, "No points yet. What you earn and spend stands here."));
  };
  await load();
  return h("section", { class: "card", "aria-labelledby": "ledger-title" }, h("h2", { id: "ledger-title" }, "Ledger"), place, more);
};
