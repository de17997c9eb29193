// Knows who is signed in: by a token in the address bar's fragment, or by OpenID Connect (code with PKCE).
// The page reads the token only to show what it says. The API verifies the token at each request.

const TOKEN = "streakline.token";
const ID_TOKEN = "streakline.id-token";
const PENDING = "streakline.sign-in";

// What stays in this browser, by name. What a storage does not take, as its user blocks it or it is full, ends with the page.
const storage = (name) => {
  const unkept = new Map();
  const tried = (work) => { try { return work(globalThis[name]); } catch { return undefined; } };
  return {
    getItem: (key) => unkept.get(key) ?? tried((kept) => kept.getItem(key)) ?? null,
    setItem: (key, value) => {
      unkept.set(key, value);
      tried((kept) => { kept.setItem(key, value); unkept.delete(key); });
    },
    removeItem: (key) => { unkept.delete(key); tried((kept) => kept.removeItem(key)); },
    clear: () => { unkept.clear(); tried((kept) => kept.clear()); },
  };
};
export const tab = storage("sessionStorage");
export const device = storage("localStorage");

let groupsClaim = "cognito:groups"; // where the issuer's tokens have groups
const here = () => new URL("./", document.baseURI).href;

const base64url = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

const claimsOf = (token) => {
  try {
    const bytes = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (each) => each.charCodeAt(0))));
  } catch {
    return null;
  }
};

const names = (value) => Array.isArray(value) ? value : String(value ?? "").split(",").map((each) => each.trim());

// Returns the signed-in person: {token, user, admin, agent}; null if there is no token or it has expired.
export const current = () => {
  const token = tab.getItem(TOKEN);
  const claims = token && claimsOf(token);
  if (!claims?.sub || (claims.exp && claims.exp * 1000 <= Date.now())) return null;
  const granted = names(claims[groupsClaim]);
  const admin = granted.includes("streakline/admin");
  return { token, user: claims.sub, admin, agent: admin || granted.includes("streakline/agents") };
};

export const forget = () => tab.clear();

// Moves a token from the fragment to the session, so that neither the history nor a copied address holds it. Where
// there is a sign-in service, a link signs nobody in: somebody could send a link with a token of theirs. Returns
// whether a link was to sign somebody in.
export const adopt = (config) => {
  groupsClaim = config.groups_claim ?? groupsClaim;
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return false;
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  if (config.oidc_authority) return false;
  tab.clear();
  if (given) tab.setItem(TOKEN, given);
  return true;
};

const discover = async (authority) => {
  const answer = await fetch(`${authority.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (!answer.ok) throw new Error("The sign-in service does not answer. Try again in a moment.");
  return answer.json();
};

// Leaves this page for the sign-in page of the authority.
export const signIn = async (config) => {
  const { authorization_endpoint: endpoint } = await discover(config.oidc_authority);
  const pending = { state: random(), verifier: random() };
  tab.setItem(PENDING, JSON.stringify(pending));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier));
  const target = new URL(endpoint);
  const asked = {
    response_type: "code", client_id: config.oidc_client_id, redirect_uri: here(), scope: "openid",
    state: pending.state, code_challenge: base64url(digest), code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(asked)) target.searchParams.set(name, value);
  location.assign(target);
};

// Ends the session here, then at the authority; leaves this page if the authority can end sessions.
export const signOut = async (config) => {
  const hint = tab.getItem(ID_TOKEN);
  forget();
  if (!config.oidc_authority) return;
  const { end_session_endpoint: endpoint } = await discover(config.oidc_authority);
  if (!endpoint) return;
  const target = new URL(endpoint);
  // Cognito calls the way back logout_uri; the standard calls it post_logout_redirect_uri.
  const asked = { client_id: config.oidc_client_id, logout_uri: here(), post_logout_redirect_uri: here() };
  if (hint) asked.id_token_hint = hint;
  for (const [name, value] of Object.entries(asked)) target.searchParams.set(name, value);
  location.assign(target);
};

// Comes back from the authority: exchanges the code for a token, once, if this tab sent the state.
export const comeBack = async (config) => {
  const query = new URLSearchParams(location.search);
  if (!query.has("state") || !(query.has("code") || query.has("error"))) return;
  history.replaceState(null, "", location.pathname);
  const pending = JSON.parse(tab.getItem(PENDING) ?? "null");
  tab.removeItem(PENDING);
  if (!config.oidc_authority || pending?.state !== query.get("state")) return;
  if (query.has("error")) throw new Error("The sign-in was not completed.");
  const { token_endpoint: endpoint } = await discover(config.oidc_authority);
  const answer = await fetch(endpoint, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "authorization_code", client_id: config.oidc_client_id, redirect_uri: here(),
      code: query.get("code"), code_verifier: pending.verifier,
    }),
  });
  if (!answer.ok) throw new Error("The sign-in was not accepted. Try again.");
  const granted = await answer.json();
  tab.setItem(TOKEN, granted.access_token);
  if (granted.id_token) tab.setItem(ID_TOKEN, granted.id_token);
};
