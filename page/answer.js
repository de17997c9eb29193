// Shows open questions, and sends the answers.

import { ask, get, part, pause } from "./api.js";
import { count, h, number, relative, say, trouble } from "./dom.js";
import { current, device, tab } from "./session.js";
import { streak } from "./source.js";

const TEXT_MAX = 2000;
const CONFIDENCES = ["A guess", "Unsure", "Fairly sure", "Sure", "Certain"];
const COUNTED_AFTER_MILLISECONDS = [300, 500, 700, 1000, 1500, 2000, 3000, 4000, 6000];

// The questions that this person has answered: those that the service knows of, and those of this tab, which may be newer.
const key = () => `streakline.answered.${current().user}`;
const answered = () => new Set(JSON.parse(tab.getItem(key()) ?? "[]"));
const remember = (id) => tab.setItem(key(), JSON.stringify([...answered(), id]));

const choice = (name, value, label, extra = {}) =>
  h("label", { class: "choice" }, h("input", { type: "radio", name, value, required: true, ...extra }), h("span", {}, label));

const confidence = () => h("fieldset", { class: "scale" },
  h("legend", {}, "How sure are you?"),
  h("div", { class: "steps" }, CONFIDENCES.map((label, index) => h("label", {},
    h("input", { type: "radio", name: "confidence", value: index + 1, required: true, "aria-label": `${index + 1} of 5: ${label}` }),
    h("span", { "aria-hidden": "true" }, index + 1)))),
  h("p", { class: "ends", "aria-hidden": "true" }, h("span", {}, "a guess"), h("span", {}, "certain")));

const field = (question) => question.type === "multiple_choice"
  ? h("fieldset", {}, h("legend", { class: "unseen" }, "Your answer"),
    question.options.map((option, index) => choice("option", index, option)))
  : h("label", { class: "text" }, h("span", {}, "Your answer"),
    h("textarea", { name: "answer", required: true, maxlength: TEXT_MAX, rows: 3 }));

// Waits until the points of an answer have arrived; returns {gained, profile}, null if they do not come.
const counted = async (before, view) => {
  for (const wait of COUNTED_AFTER_MILLISECONDS) {
    await pause(wait, view.signal);
    const profile = await view.refreshFigures(view.signal);
    const gained = profile.total_bestie_points - before;
    if (gained > 0) return { gained, profile };
  }
  return null;
};

const thank = async (card, words, before, view) => {
  const note = h("p", { class: "note" }, "Counting ...");
  const heading = card.querySelector("h2");
  card.classList.add("done");
  card.querySelector("form").replaceWith(h("p", { class: "given" }, words), note);
  heading.setAttribute("tabindex", "-1");
  heading.focus();
  try {
    const outcome = await counted(before, view);
    note.textContent = outcome
      ? `+${count(outcome.gained, "point")}. Your streak is ${count(outcome.profile.current_streak, "day")}.`
      : "Your answer is stored. Points follow, up to the daily limit.";
    if (outcome) note.classList.add("gained");
  } catch {
    note.textContent = "Your answer is stored.";
  }
  say(note.textContent);
};

const bodyOf = (form, question, since) => {
  const given = new FormData(form);
  const answer = question.type === "multiple_choice"
    ? { selected_option: Number(given.get("option")) } : { answer: String(given.get("answer")).trim() };
  return {
    ...answer,
    confidence: Number(given.get("confidence")),
    response_time_ms: Math.min(Math.round(performance.now() - since), 86_400_000),
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
};

// Sends an answer; a person answers a question once, so it may be sent again. Returns null if the first try had
// arrived after all.
const send = async (question, body, signal) => {
  try {
    return await ask("POST", `v1/questions/${part(question.question_id)}/responses`, { body, signal, repeatable: true });
  } catch (error) {
    if (error.code === "already_answered" && error.repeated) return null;
    throw error;
  }
};

const submit = async (card, question, since, view) => {
  const form = card.querySelector("form");
  const button = form.querySelector("button");
  const body = bodyOf(form, question, since);
  form.querySelector(".trouble")?.remove();
  if (body.answer === "") {
    form.prepend(trouble(new Error("Write an answer first.")));
    form.querySelector("textarea").focus();
    return;
  }
  button.disabled = true;
  try {
    const { total_bestie_points: before } = view.profile() ?? await view.refreshFigures(view.signal);
    const receipt = await send(question, body, view.signal);
    if (receipt) card.querySelector(".about").textContent = about({ ...question, current_responses: receipt.current_responses });
    remember(question.question_id);
    await thank(card, question.type === "multiple_choice" ? question.options[body.selected_option] : body.answer, before, view);
  } catch (error) {
    if (view.signal.aborted) return;
    if (error.status === 409 || error.status === 404) {
      remember(question.question_id);
      card.classList.add("done");
      form.replaceWith(trouble(error));
      return;
    }
    form.prepend(trouble(error));
    button.disabled = false;
    button.focus();
  }
};

const about = (question) => [
  question.category,
  `${question.current_responses} of ${count(question.required_responses, "answer")}`,
  `closes ${relative(question.closes_at)}`,
].filter(Boolean).join(" · ");

const card = (question, view) => {
  const since = performance.now();
  const id = `q-${question.question_id}`;
  const made = h("article", { class: "card question", "aria-labelledby": id },
    h("h2", { id }, question.prompt),
    h("p", { class: "about" }, about(question)),
    h("form", { onsubmit: (event) => { event.preventDefault(); submit(made, question, since, view); } },
      field(question), confidence(), h("button", { class: "main" }, "Send answer")));
  return made;
};

const empty = () => h("div", { class: "empty" },
  h("p", {}, "Nothing to answer right now."),
  h("p", { class: "note" }, "New questions appear here as they are asked."));

// Shows streak and points beside the questions, where there is room. They change after every answer.
const today = (view) => {
  const box = h("aside", { class: "card today", "aria-label": "Your streak" });
  const draw = ({ detail: profile }) => box.replaceChildren(
    h("h2", {}, "Your streak"), streak(profile),
    h("p", { class: "note" }, `${count(profile.total_bestie_points, "point")}, ${profile.debt ? `${number(profile.debt)} owed` : `${number(profile.balance)} to spend`}`));
  addEventListener("streakline:profile", draw, { signal: view.signal });
  return box;
};

// A person's tags decide which questions the page lists. This browser keeps the tags.
const tagsKey = () => `streakline.tags.${current().user}`;
const tags = () => (device.getItem(tagsKey()) ?? "").split(",").map((tag) => tag.trim().toLowerCase()).filter(Boolean);
const chooser = (changed) => {
  const input = h("input", { id: "tags", value: tags().join(", "), maxlength: 200, autocomplete: "off" });
  return h("form", {
    class: "row tags", onsubmit: (event) => {
      event.preventDefault();
      device.setItem(tagsKey(), input.value);
      changed();
    },
  }, h("label", { for: "tags" }, "Your tags"), input, h("button", { class: "quiet" }, "Apply"),
  h("p", { class: "note" }, "Show only questions for some of your groups, divided by commas; without any, you see all of yours."));
};

export const show = async (root, view) => {
  const list = h("div", { class: "cards" });
  const more = h("button", { type: "button", class: "quiet", hidden: true }, "Show more");
  const fail = (error) => { if (!view.signal.aborted) list.append(trouble(error)); };
  let cursor = null;
  const given = get(`v1/users/${part(view.person.user)}/answers?limit=100`, view.signal)
    .then(({ answers }) => answers.map((each) => each.question_id)).catch(() => []);
  const load = async () => {
    const audience = tags();
    const query = [audience.length && `&audience=${encodeURIComponent(audience.join(","))}`, cursor && `&cursor=${encodeURIComponent(cursor)}`];
    const page = await get(`v1/questions?status=OPEN&limit=20${query.filter(Boolean).join("")}`, view.signal);
    const known = new Set([...answered(), ...await given]);
    const open = page.questions.filter((question) => !known.has(question.question_id));
    list.append(...open.map((question) => card(question, view)));
    cursor = page.cursor;
    more.hidden = !cursor;
    if (!list.children.length && !cursor) list.append(empty());
  };
  const again = () => {
    cursor = null;
    list.replaceChildren();
    return load().then(() => say(`${count(list.querySelectorAll(".question").length, "question")}.`)).catch(fail);
  };
  more.addEventListener("click", () => load().catch(fail));
  const beside = today(view);
  await Promise.all([load(), view.refreshFigures(view.signal).catch(() => {})]);
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Open questions"),
    h("div", { class: "beside" }, h("div", { class: "stack" }, list, more, chooser(again)), beside));
};
