// Sends the calls of the reference of the API, and shows the answers: of /v1/docs and of the documentation site.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const [own, ...rest] = location.href.split(/\/v1\/docs/);
  if (rest.length) byId("address").value = own; // the page's policy lets it call no other

  // A link to a folded part opens it.
  const unfold = () => {
    const part = byId(location.hash.slice(1));
    const folded = part?.closest("details");
    if (!folded || folded.open) return;
    folded.open = true;
    part.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // The form's fields in the call's path and query. An empty field of the query is left out.
  const target = (form) => {
    const query = new URLSearchParams();
    let path = form.dataset.path;
    for (const field of form.querySelectorAll("input")) {
      if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value).replaceAll("%2F", "%252F"));
      else if (field.value) query.append(field.name, field.value);
    }
    return byId("address").value.replace(/\/+$/, "") + path + (query.size ? `?${query}` : "");
  };

  const send = async (form) => {
    const headers = {}, token = byId("token").value.trim();
    if (token) headers.authorization = `Bearer ${token}`;
    const body = form.querySelector("textarea")?.value;
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(target(form), { method: form.dataset.method.toUpperCase(), headers, body });
    const said = await answer.text();
    try {
      return [answer.status, JSON.stringify(JSON.parse(said), null, 2)];
    } catch {
      return [answer.status, said];
    }
  };

  for (const form of document.querySelectorAll("form.try")) {
    const body = form.querySelector("textarea"), shown = form.querySelector("output");
    // What happens now, under a key of its own: the service refuses old events, and other content under a known key.
    if (body) {
      body.value = body.value.replace(/("occurred_at": ")[^"]*/, `$1${new Date().toISOString()}`)
        .replace(/("idempotency_key": ")[^"]*/, `$1${crypto.randomUUID?.() ?? Date.now()}`);
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!byId("address").reportValidity()) return;
      shown.textContent = "Sending…";
      try {
        shown.textContent = (await send(form)).join("\n");
      } catch (error) {
        shown.textContent = `No answer: ${error.message}`;
      }
    });
  }
})();
