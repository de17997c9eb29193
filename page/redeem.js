// Redeems a reward once for a press, also where the answer is lost.

import { ask, part } from "./api.js";
import { device } from "./session.js";

// The key of a press whose outcome is not known. It stays in this browser until the service has answered, so the next
// press asks for the same redemption, and nobody pays twice.
const place = (user, reward) => `streakline.redeeming.${user}.${reward}`;
// Only the service itself, in its words, says that nothing was redeemed: somebody on the way may refuse what came after
// an attempt that had arrived. After these of its own refusals, too, an earlier attempt may have.
const UNCERTAIN = [401, 408, 425, 429];
const isUnknown = (error) => !error.code || error.status < 400 || error.status > 499 || UNCERTAIN.includes(error.status);

export const isOpen = (user, reward) => device.getItem(place(user, reward)) !== null;

// Returns the ledger entry of the redemption. duplicate: an earlier press had arrived. error.unknown: it is not known
// whether it arrived. price: what the person agreed to, in points; at another price nothing is redeemed.
export const redeem = async (user, reward, price, signal) => {
  const key = device.getItem(place(user, reward)) ?? crypto.randomUUID();
  device.setItem(place(user, reward), key);
  try {
    const entry = await ask("POST", `v1/users/${part(user)}/redemptions`, { body: { reward, price_points: price, idempotency_key: key }, signal });
    device.removeItem(place(user, reward));
    return entry;
  } catch (error) {
    if (isUnknown(error)) throw Object.assign(error, { unknown: true });
    device.removeItem(place(user, reward));
    throw error;
  }
};
