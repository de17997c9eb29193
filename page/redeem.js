// Redeems a reward, or takes a freeze: once for a press, also where the answer is lost.

import { ask, part } from "./api.js";
import { device } from "./session.js";

// The key of a press whose outcome is not known. It stays in this browser until the service has answered, so the next
// press asks for the same, and nobody pays twice.
const place = (user, what) => `streakline.redeeming.${user}.${what}`;
// Only the service itself, in its words, says that nothing has happened: somebody on the way may refuse what came after
// an attempt that had arrived. After these of its own refusals, too, an earlier attempt may have.
const UNCERTAIN = [401, 408, 425, 429];
const isUnknown = (error) => !error.code || error.status < 400 || error.status > 499 || UNCERTAIN.includes(error.status);

export const isOpen = (user, what) => device.getItem(place(user, what)) !== null;

// Returns the ledger entry of what a press asks for. what: its name. path: below the user's. duplicate: an earlier press had
// arrived. error.unknown: it is not known whether it arrived.
export const once = async (user, what, path, body, signal) => {
  const key = device.getItem(place(user, what)) ?? crypto.randomUUID();
  device.setItem(place(user, what), key);
  try {
    const entry = await ask("POST", `v1/users/${part(user)}/${path}`, { body: { ...body, idempotency_key: key }, signal });
    device.removeItem(place(user, what));
    return entry;
  } catch (error) {
    if (isUnknown(error)) throw Object.assign(error, { unknown: true });
    device.removeItem(place(user, what));
    throw error;
  }
};

// Redeems a reward. price: what the person agreed to, in points; at another price nothing is redeemed.
export const redeem = (user, reward, price, signal) => once(user, reward, "redemptions", { reward, price_points: price }, signal);
