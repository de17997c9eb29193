// Calls the API. Paths are relative to this page, so it works below any base path.

import { current } from "./session.js";

const SENTENCES = {
  already_answered: "You have answered this question already.",
  question_closed: "This question has all the answers it asked for.",
  question_expired: "This question is no longer open.",
  forbidden: "Your sign-in does not reach this.",
  unavailable: "The service is busy. Try again in a moment.",
  insufficient_balance: "You do not have the points for this.",
  reward_limit: "You have as many of this as one person may have.",
  reward_not_valid: "This is not offered at the moment.",
  not_repairable: "Your streak cannot be repaired now.",
  freezes_held_max: "You have as many freezes as one person may have.",
  friends_not_offered: "There are no friends here.",
  friends_max: "One of you has as many friends as one person may have.",
  requests_max: "Too many requests wait for an answer already.",
  blocked: "You have blocked this person. Unblock them first.",
  sold_out: "Nothing is left of this.",
  unknown_reward: "This is not offered any more.",
  under_review: "Your account is being looked at. You can spend your points after that.",
  rate_limited: "That was a lot at once. Try again in a minute.",
};
const AGAIN_MILLISECONDS = [300, 900, 2000];

// An answer other than success. message: words for people; status, code and details ({field, reason}): for the program.
export class Refusal extends Error {
  constructor(status, error) {
    const detail = error.details?.[0];
    super(SENTENCES[error.code] ?? (detail?.field ? `${detail.field} ${detail.reason}` : error.message));
    Object.assign(this, { status, code: error.code, details: error.details ?? [] });
  }
}

export const pause = (milliseconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
});

const once = async (method, path, { body, signal } = {}) => {
  const headers = { authorization: `Bearer ${current()?.token ?? ""}` };
  if (body) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(new URL(path, document.baseURI), {
      method, headers, signal, body: body && JSON.stringify(body), cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(0, { code: "offline", message: "The service cannot be reached. Check your connection." });
  }
  if (answer.status === 204) return null;
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  if (answer.status === 401) dispatchEvent(new Event("streakline:signed-out"));
  throw new Refusal(answer.status, content.error ?? { message: `The service answered ${answer.status}.` });
};

// Sends a request. If the service is busy or out of reach, it sends the request again if that is safe: a GET, a body
// with an idempotency key, or what the caller says may be repeated. error.repeated: it was sent before.
export const ask = async (method, path, options = {}) => {
  const repeatable = method === "GET" || options.body?.idempotency_key || options.repeatable;
  let repeated = false;
  for (const wait of repeatable ? AGAIN_MILLISECONDS : []) {
    try {
      return await once(method, path, options);
    } catch (error) {
      if (![0, 503].includes(error.status) || options.signal?.aborted) throw Object.assign(error, { repeated });
      repeated = true;
      await pause(wait * (0.5 + Math.random()), options.signal);
    }
  }
  try {
    return await once(method, path, options);
  } catch (error) {
    throw Object.assign(error, { repeated });
  }
};
export const get = (path, signal) => ask("GET", path, { signal });
// A slash is encoded twice: an HTTP API decodes a path before it looks for the route.
export const part = (text) => encodeURIComponent(text).replaceAll("%2F", "%252F");
