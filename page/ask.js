// For agents: asks a question, and shows its answers as they come in.

import { ask, get, part, pause } from "./api.js";
import { count, h, number, relative, say, trouble } from "./dom.js";

const WAIT_SECONDS = 20;
const BUSY_MILLISECONDS = 3000;
const HOUR_MILLISECONDS = 3_600_000;
const tag = (text) => text.toLowerCase().replace(/\s+/g, "-");
const lines = (text, separator) => String(text ?? "").split(separator).map((line) => line.trim()).filter(Boolean);

const bodyOf = (form, key, at) => {
  const given = new FormData(form);
  const body = {
    idempotency_key: key,
    type: given.get("type"),
    prompt: String(given.get("prompt")).trim(),
    required_responses: Number(given.get("required")),
    closes_at: new Date(at + Number(given.get("hours")) * HOUR_MILLISECONDS).toISOString(),
  };
  if (body.type === "multiple_choice") body.options = lines(given.get("options"), "\n");
  const audience = lines(given.get("audience"), ",").map(tag);
  if (audience.length) body.audience = audience;
  const category = tag(String(given.get("category")).trim());
  if (category) body.category = category;
  return body;
};

const bar = (label, votes, total) => {
  const fill = h("span", { class: "fill" });
  fill.style.inlineSize = `${total ? Math.round((100 * votes) / total) : 0}%`;
  return h("li", {}, h("span", { class: "label" }, label), h("span", { class: "votes" }, number(votes)),
    h("span", { class: "track", "aria-hidden": "true" }, fill));
};

const results = (question, answers) => question.type === "multiple_choice"
  ? h("ul", { class: "bars" }, question.options.map((option, index) =>
    bar(option, answers.filter((answer) => answer.selected_option === index).length, answers.length)))
  : h("ul", { class: "texts" }, [...answers].reverse().map((answer) =>
    h("li", {}, h("p", {}, answer.answer), h("p", { class: "note" }, `sure: ${answer.confidence} of 5 · ${relative(answer.created_at)}`))));

// Polls once. While the service is busy or out of reach, it asks again.
const newer = async (path, signal) => {
  for (;;) {
    try {
      return await get(path, signal);
    } catch (error) {
      if (signal.aborted || ![0, 429, 503].includes(error.status)) throw error;
      await pause(BUSY_MILLISECONDS, signal);
    }
  }
};

// Shows a question, and polls for its answers until the question is done or the person leaves the view.
const watch = async (panel, id, signal, changed) => {
  const answers = [];
  panel.hidden = false;
  panel.replaceChildren(h("div", { class: "card" }, h("p", { class: "note" }, "Loading ...")));
  const question = await get(`v1/questions/${part(id)}`, signal);
  const title = h("h2", { tabindex: "-1" }, question.prompt);
  const state = h("p", { class: "about" });
  const shown = h("div", {});
  panel.replaceChildren(h("article", { class: "card watched" }, title, state, shown));
  title.focus();
  for (let after = "", wait = 0; ; wait = WAIT_SECONDS) {
    const page = await newer(`v1/questions/${part(id)}/responses?wait=${wait}${after && `&after=${encodeURIComponent(after)}`}`, signal);
    if (signal.aborted) return;
    answers.push(...page.responses);
    after = page.cursor;
    const until = page.done ? page.status.toLowerCase() : `waiting, closes ${relative(question.closes_at)}`;
    state.textContent = `${number(answers.length)} of ${count(question.required_responses, "answer")} · ${until}`;
    shown.replaceChildren(answers.length ? results(question, answers)
      : h("p", { class: "note" }, page.done ? "No answers came." : "The first answer appears here."));
    if (page.responses.length && wait) say(`${count(answers.length, "answer")}.`);
    changed(question, answers.length, page.status);
    if (page.done) return;
  }
};

const field = (label, control, hint) => h("label", { class: "text" }, h("span", {}, label, hint && h("small", {}, ` ${hint}`)), control);

// What is wrong with a field: by the field's name in the form, as the API names it.
const FIELDS = { prompt: "prompt", options: "options", required_responses: "required", closes_at: "hours", category: "category", audience: "audience" };
const OPTIONS_MIN = 2, OPTIONS_MAX = 10;
const REASONS = {
  prompt: "Write a question of up to 1,000 characters.",
  options: `Write ${OPTIONS_MIN} to ${OPTIONS_MAX} different options, one a line, of up to 200 characters each.`,
  required: "Choose a number from 1 to 1,000.",
  hours: "Choose a number from 1 to 720.",
  category: "Use up to 32 letters, digits and dashes.",
  audience: "Use up to 10 tags of letters, digits and dashes, divided by commas.",
};
const problems = (form) => {
  const given = new FormData(form);
  const options = lines(given.get("options"), "\n");
  const areGood = options.length >= OPTIONS_MIN && options.length <= OPTIONS_MAX && new Set(options).size === options.length;
  return Object.values(FIELDS).filter((name) => !form.elements[name].validity.valid
    || (name === "prompt" && !given.get("prompt").trim())
    || (name === "options" && given.get("type") === "multiple_choice" && !areGood));
};

const clearProblem = (control) => {
  document.getElementById(control.getAttribute("aria-describedby"))?.remove();
  for (const name of ["aria-invalid", "aria-describedby"]) control.removeAttribute(name);
};
const clearProblems = (form) => {
  form.querySelectorAll("[aria-invalid]").forEach(clearProblem);
  for (const each of form.querySelectorAll(".trouble")) each.remove();
};

// Shows at its field what is wrong, and moves the keyboard to the first of them.
const showProblems = (form, names) => {
  for (const name of names) {
    const control = form.elements[name];
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", `${name}-problem`);
    control.closest("label").after(h("small", { class: "trouble", id: `${name}-problem` }, REASONS[name]));
  }
  form.elements[names[0]].focus();
};
const kind = (value, label, checked) => h("label", { class: "choice" },
  h("input", { type: "radio", name: "type", value, checked }), h("span", {}, label));

const composer = (submit) => {
  const options = field("Options", h("textarea", { name: "options", rows: 4, placeholder: "More time\nMore room" }), "2 to 10, one a line");
  const form = h("form", { class: "card composer", novalidate: true, onsubmit: (event) => { event.preventDefault(); submit(form); } },
    field("Question", h("textarea", { name: "prompt", rows: 2, maxlength: 1000, required: true })),
    h("fieldset", { class: "side" }, h("legend", {}, "Answered by"), kind("multiple_choice", "a choice", true), kind("text", "a text")),
    options,
    h("div", { class: "pair" },
      field("Answers wanted", h("input", { type: "number", name: "required", min: 1, max: 1000, value: 5, required: true })),
      field("Open for", h("input", { type: "number", name: "hours", min: 1, max: 720, value: 24, required: true }), "hours")),
    h("div", { class: "pair" },
      field("Category", h("input", { name: "category", maxlength: 32 }), "optional"),
      field("Audience", h("input", { name: "audience", maxlength: 200 }), "tags, optional")),
    h("button", { class: "main" }, "Ask"));
  form.addEventListener("input", ({ target }) => { if (target.matches("[aria-invalid]")) clearProblem(target); });
  form.addEventListener("change", () => {
    options.hidden = new FormData(form).get("type") !== "multiple_choice";
  });
  return form;
};

const STATES = { PARTIAL: "open" };
const progressOf = (status, have, wanted) => `${STATES[status] ?? status.toLowerCase()} · ${number(have)} of ${count(wanted, "answer")}`;

const own = (questions, open) => h("section", { class: "card", "aria-labelledby": "own-title" },
  h("h2", { id: "own-title" }, "Asked before"),
  questions.length
    ? h("ul", { class: "asked" }, questions.map((question) => h("li", {},
      h("button", { type: "button", class: "link", onclick: () => open(question.question_id) }, question.prompt),
      h("span", { class: "note", "data-question": question.question_id }, progressOf(question.status, question.current_responses, question.required_responses)))))
    : h("p", { class: "note" }, "Nothing yet."));

export const show = async (root, view) => {
  const panel = h("div", { hidden: true });
  const before = h("div", {});
  let stop = new AbortController();
  let key = crypto.randomUUID();
  let at = null;
  const open = (id) => {
    stop.abort();
    stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, view.signal]);
    watch(panel, id, signal, changed).catch((error) => {
      if (!signal.aborted) panel.replaceChildren(trouble(error));
    });
  };
  // The list says of a watched question what the watched question says.
  const changed = (question, answers, status) => {
    const note = before.querySelector(`[data-question="${question.question_id}"]`);
    if (note) note.textContent = progressOf(status, answers, question.required_responses);
  };
  const list = async () => {
    const page = await get(`v1/agents/${part(view.person.user)}/questions?limit=10`, view.signal);
    before.replaceChildren(own(page.questions, open));
  };
  // Key and time stay the same until the service has answered. So a second click after a fault sends the same
  // body, and the question is asked once.
  const submit = async (form) => {
    const button = form.querySelector("button.main");
    clearProblems(form);
    const wrong = problems(form);
    if (wrong.length) return showProblems(form, wrong);
    at ??= Date.now();
    button.disabled = true;
    button.textContent = "Asking ...";
    try {
      const made = await ask("POST", "v1/questions", { body: bodyOf(form, key, at), signal: view.signal });
      [key, at] = [crypto.randomUUID(), null];
      for (const name of ["prompt", "options"]) form.elements[name].value = "";
      open(made.question_id);
      await list();
    } catch (error) {
      if (view.signal.aborted) return;
      if (error.status === 409) key = crypto.randomUUID();
      if (![0, 503].includes(error.status)) at = null;
      const fields = [...new Set((error.details ?? []).map((each) => FIELDS[each.field?.split(".")[0]]).filter(Boolean))];
      if (fields.length) showProblems(form, fields);
      else form.append(trouble(error));
    } finally {
      button.disabled = false;
      button.textContent = "Ask";
    }
  };
  await list().catch((error) => { if (view.signal.aborted) throw error; before.replaceChildren(trouble(error)); });
  root.replaceChildren(h("h1", { tabindex: "-1" }, "Ask a question"), h("div", { class: "two" }, composer(submit), h("div", { class: "stack" }, panel, before)));
};
