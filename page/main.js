// Starts the page, routes between the views, and shows streak and points in the header.

import { get, part } from "./api.js";
import { byId, count, h, number, say, trouble } from "./dom.js";
import { adopt, comeBack, current, forget, signIn, signOut } from "./session.js";

const VIEWS = {
  you: ["You", () => import("./you.js")],
  rewards: ["Rewards", () => import("./rewards.js")],
  achievements: ["Achievements", () => import("./achievements.js")],
  calendar: ["Calendar", () => import("./calendar.js")],
  boards: ["Boards", () => import("./boards.js")],
  friends: ["Friends", () => import("./friends.js")],
  answer: ["Answer", () => import("./answer.js")],
  ask: ["Ask", () => import("./ask.js")],
  book: ["Book of rules", () => import("./book.js")],
  operations: ["Operations", () => import("./operations.js")],
};
const main = byId("main");
let leaving = new AbortController();
let config = {};
let known = null; // the profile as it was last read
let isByLink = false; // whether a link was to sign the person in, and the service has not yet answered
const NO_LINK = "This sign-in link is not valid, or no longer. Ask for a new one.";

// Shows the streak, and the points that can be spent, in the header; returns the profile.
export const refreshFigures = async (signal) => {
  const profile = known = await get(`v1/users/${part(current().user)}`, signal);
  isByLink = false;
  byId("figure-streak").textContent = count(profile.current_streak, "day");
  byId("figure-points").textContent = number(profile.available);
  byId("figures").hidden = false;
  dispatchEvent(new CustomEvent("streakline:profile", { detail: profile }));
  return profile;
};

// Views of a part that a deployment may leave out.
const PART_OF_VIEW = { answer: "questions", ask: "questions" };
const isThere = (name) => !PART_OF_VIEW[name] || (config.parts ?? []).includes(PART_OF_VIEW[name]);
const allowed = (person, name) => isThere(name)
  && (({ ask: person.agent, book: person.admin, operations: person.admin })[name] ?? true);

const welcome = (problem) => {
  document.title = "Sign in - Streakline";
  for (const id of ["nav", "figures", "sign-out"]) byId(id).hidden = true;
  const button = config.oidc_authority && h("button", {
    type: "button", class: "main",
    onclick: () => signIn(config).catch((error) => welcome(error)),
  }, "Sign in");
  main.replaceChildren(h("section", { class: "welcome" },
    h("div", { class: "motif", "aria-hidden": "true" }, [..."1110111101111"].map((day) => h("span", { class: day === "1" && "on" })), h("span", { class: "next" })),
    h("h1", { tabindex: "-1" }, "Keep your streak alive"),
    h("p", { class: "lead" }, "See your days, collect points, and spend them."),
    problem && trouble(problem),
    button || h("p", { class: "note" }, "Open this page by the sign-in link that you were given.")));
};

const show = async () => {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const person = current();
  if (!person) return welcome();
  const asked = location.hash.slice(2).split("/")[0];
  const name = Object.hasOwn(VIEWS, asked) && allowed(person, asked) ? asked : "you";
  const [title, load] = VIEWS[name];
  document.title = `${title} - Streakline`;
  for (const id of ["nav", "sign-out"]) byId(id).hidden = false;
  for (const each of ["answer", "ask", "book", "operations"]) byId(`nav-${each}`).hidden = !allowed(person, each);
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.hash === `#/${name}`) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" }); // on a phone the links are a strip
    } else link.removeAttribute("aria-current");
  }
  const root = h("section", { class: `view ${name}`, "aria-busy": "true" }, h("p", { class: "note loading" }, "Loading ..."));
  main.replaceChildren(root);
  try {
    const view = await load();
    if (signal.aborted) return;
    if (byId("figures").hidden && !["answer", "rewards", "you"].includes(name)) refreshFigures(signal).catch(() => {});
    await view.show(root, { person, signal, refreshFigures, profile: () => known });
  } catch (error) {
    if (signal.aborted) return;
    root.replaceChildren(h("h1", { tabindex: "-1" }, title), trouble(error));
  }
  root.removeAttribute("aria-busy");
};

// Shows the view that the address names, and moves the keyboard to its heading. The first view of a visit does not
// come through here, so the keyboard begins at the top of the page.
const follow = async () => {
  await show();
  main.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
};

const leave = (problem) => {
  known = null;
  forget();
  leaving.abort();
  history.replaceState(null, "", location.pathname);
  welcome(problem);
  main.querySelector("h1").focus();
};

const start = async () => {
  let problem = null;
  try {
    config = await fetch(new URL("app/config.json", document.baseURI)).then((answer) => answer.json());
    isByLink = adopt(config);
    await comeBack(config);
    if (isByLink && !current()) problem = new Error(NO_LINK);
  } catch (error) {
    problem = error;
  }
  if (!current()) return welcome(problem);
  await show();
};

byId("skip").addEventListener("click", (event) => { // the link's fragment is no route, so do not follow it
  event.preventDefault();
  main.querySelector("h1")?.focus();
});
byId("sign-out").addEventListener("click", () => {
  const ended = signOut(config);
  leave();
  say("Signed out");
  ended.catch(() => welcome(new Error("You are signed out here, but the sign-in service could not be told. Sign out there too.")));
});
addEventListener("streakline:signed-out", () => leave(new Error(isByLink ? NO_LINK : "Your sign-in has ended. Sign in again.")));
addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#token=")) return follow();
  known = null;
  return start();
});
start();
