// For operators: shows the pipeline as it is now.

import { get, pause } from "./api.js";
import { byId, clock, count, h, number, relative, say, svg, table, trouble } from "./dom.js";

const REFRESH_MILLISECONDS = 3000;
const CHART = { width: 600, height: 80 };
const BEHIND_SECONDS_MAX = 60; // as `streakline status` has it: LATE in local/operate/verdict.py
const QUIET_SECONDS = 60;

const age = (instant, now) => Math.max(0, (Date.parse(now) - Date.parse(instant)) / 1000);
const seconds = (value) => value < 10 ? `${value.toFixed(1)} s` : value < 120 ? `${Math.round(value)} s` : `${number(Math.round(value / 60))} min`;

// Shows a state by a word and a sign. The colour only repeats it, for those who see it.
const state = (good, text) => h("span", { class: good ? "good" : "bad" }, h("span", { "aria-hidden": "true" }, good ? "● " : "▲ "), text);

const spark = (values) => {
  const most = Math.max(...values);
  const x = (index) => ((index * CHART.width) / Math.max(1, values.length - 1)).toFixed(1);
  const y = (value) => (CHART.height - 2 - (value * (CHART.height - 6)) / most).toFixed(1);
  const line = values.map((value, index) => `${x(index)},${y(value)}`).join(" ");
  return svg("svg", { viewBox: `0 0 ${CHART.width} ${CHART.height}`, class: "spark", role: "img", preserveAspectRatio: "none",
    "aria-label": `Events a second over the last minute; the most was ${number(most)}` },
    svg("polygon", { points: `0,${CHART.height} ${line} ${CHART.width},${CHART.height}` }),
    svg("polyline", { points: line }));
};

const rate = (values) => Math.max(...values) > 0
  ? [h("p", { class: "note" }, `at most ${number(Math.max(...values))}`), spark(values)]
  : [h("p", { class: "note" }, "No events in the last minute.")];

const tile = (name, value, note) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value), note && h("dd", { class: "note" }, note));

// Says whether the consumers keep up. A consumer that has stopped looks like one without work, so after a minute
// without a batch this says "no batch for ...", and never "keeping up".
const pace = (consumers, now) => {
  const late = consumers.filter((each) => each.behind_seconds > BEHIND_SECONDS_MAX);
  if (late.length) return state(false, late.some((each) => each.waiting_since) ? "events wait" : "late");
  const quiet = consumers.filter((each) => each.last_batch_at && age(each.last_batch_at, now) > QUIET_SECONDS);
  if (!quiet.length) return state(true, "keeping up");
  return `no batch for ${seconds(Math.min(...quiet.map((each) => age(each.last_batch_at, now))))}: ${quiet.map((each) => each.name).join(", ")}`;
};

const tiles = (told) => {
  const { throughput, consumers, queues, nightly, unknown } = told;
  const furthest = consumers && Math.max(0, ...consumers.map((each) => each.behind_seconds));
  const failures = queues?.filter((queue) => queue.kind === "failure") ?? [];
  const failed = failures.reduce((sum, queue) => sum + (queue.waiting ?? 0), 0);
  return h("dl", { class: "tiles" },
    tile("Events a second", throughput ? throughput.events_per_second.toFixed(1) : "unknown",
      throughput ? `mean of the last ${throughput.window_seconds} seconds` : unknown.throughput),
    tile("Furthest behind", consumers?.length ? seconds(furthest) : "unknown",
      consumers?.length ? pace(consumers, told.at) : unknown.consumers ?? "no consumer has reported"),
    tile("In failure queues", queues ? number(failed) : "unknown",
      queues ? state(failed === 0, failed ? "waits for you" : "nothing waits") : unknown.queues),
    tile("Last nightly run", nightly ? relative(nightly.made_at) : "unknown",
      nightly ? state(!nightly.failed, nightly.failed ? "failed" : "succeeded") : unknown.nightly));
};

// EngagementFailures -> Engagement failures
const words = (name) => name.replace(/([a-z])([A-Z])/g, (_, before, after) => `${before} ${after.toLowerCase()}`);
const ago = (instant, now) => `${seconds(age(instant, now))} ago`;
const figures = (queue) => queue.waiting === null
  ? [words(queue.name), queue.reason, "unknown", "unknown"]
  : [words(queue.name), queue.kind === "failure" ? state(queue.waiting === 0, queue.waiting ? "needs a look" : "empty") : queue.waiting + queue.in_flight ? "in progress" : "empty",
    number(queue.waiting), number(queue.in_flight)];

const freshness = ({ lake, nightly, unknown }) => h("section", { class: "card" }, h("h2", {}, "Freshness"),
  h("dl", { class: "facts" },
    h("div", {}, h("dt", {}, "Newest curated day"), h("dd", {}, lake?.newest_partition ?? unknown.lake)),
    h("div", {}, h("dt", {}, "Curated up to"), h("dd", {}, lake?.watermark ? relative(lake.watermark) : lake ? "no run has ended yet" : "unknown")),
    h("div", {}, h("dt", {}, "Last nightly run"), h("dd", {}, nightly ? [relative(nightly.made_at), h("small", {}, nightly.run_id)] : unknown.nightly)),
    nightly && h("div", {}, h("dt", {}, "What it found"), h("dd", {}, nightly.failed ? String(nightly.error) : `${count(nightly.different, "user")} different, ${number(nightly.unrepaired)} not repaired`))));

// Draws everything anew. The keyboard and the scroll position of each table stay where they were.
const draw = (board, told) => {
  const held = [...board.querySelectorAll(".scroll")];
  const places = held.map((each) => each.scrollLeft);
  const focused = held.indexOf(document.activeElement);
  const { throughput, consumers, queues, unknown } = told;
  board.replaceChildren(
    tiles(told),
    h("section", { class: "card chart" }, h("h2", {}, "Events a second, last minute"), ...(throughput
      ? rate(throughput.per_second)
      : [h("p", { class: "note" }, unknown.throughput)])),
    h("div", { class: "two" },
      h("section", { class: "card" }, h("h2", {}, "Consumers"), consumers
        ? table("Consumers", ["Consumer", "Behind", "Last batch"], consumers.map((each) => [each.name, seconds(each.behind_seconds), each.last_batch_at ? ago(each.last_batch_at, told.at) : "not within a day"]), "No consumer has reported in the last day.")
        : h("p", { class: "note" }, unknown.consumers)),
      freshness(told)),
    h("section", { class: "card" }, h("h2", {}, "Queues"), queues
      ? h("div", { class: "queues" }, table("Queues", ["Queue", "State", "Waiting", "Taken"], queues.map(figures), "No queues are named."))
      : h("p", { class: "note" }, unknown.queues)));
  for (const [index, each] of [...board.querySelectorAll(".scroll")].entries()) {
    each.scrollLeft = places[index] ?? 0;
    if (index === focused) each.focus({ preventScroll: true });
  }
};

const failed = (told) => (told.queues ?? []).filter((queue) => queue.kind === "failure").reduce((sum, queue) => sum + (queue.waiting ?? 0), 0);

export const show = async (root, view) => {
  let paused = false;
  let before = 0;
  const at = h("p", { class: "note", id: "as-of" }, "Loading ...");
  const board = h("div", { class: "stack" });
  const button = h("button", {
    type: "button", class: "quiet", onclick: () => {
      paused = !paused;
      button.textContent = paused ? "Go on" : "Pause";
      at.textContent = paused ? `${at.textContent}, paused` : "Refreshing ...";
      say(paused ? "Paused" : "Refreshing again");
    },
  }, "Pause");
  root.replaceChildren(h("div", { class: "bar" }, h("h1", { tabindex: "-1" }, "Operations"), at, button), board);
  const refresh = async () => {
    try {
      const told = await get("v1/operations", view.signal);
      if (paused && board.children.length) return;
      draw(board, told);
      at.textContent = `as of ${clock(told.at)}`;
      if (failed(told) > before) say(`${count(failed(told), "message")} in failure queues.`);
      before = failed(told);
    } catch (error) {
      if (view.signal.aborted || error.status === 403) throw error;
      at.replaceChildren(trouble(error));
    }
  };
  const live = async () => {
    for (;;) {
      if (!paused && !document.hidden) await refresh();
      await pause(REFRESH_MILLISECONDS, view.signal);
    }
  };
  await refresh();
  live().catch((error) => { if (!view.signal.aborted) byId("as-of").replaceChildren(trouble(error)); });
};
