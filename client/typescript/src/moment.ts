/** Times as the API writes them, and the place where they were read. */

const MINUTE = 60_000;
const two = (value: number): string => String(Math.trunc(Math.abs(value))).padStart(2, '0');

/** Where a device is: minutes east of UTC at that moment, and the zone's name if the platform has one. */
export interface Place { offset: number; zone?: string }

/** Return where this device is at an instant. */
export function here(wall: number): Place {
  const place: Place = { offset: -new Date(wall).getTimezoneOffset() };
  const zone = typeof Intl === 'undefined' ? undefined : Intl.DateTimeFormat().resolvedOptions().timeZone;
  // Without a name the offset decides. Etc/Unknown is what some platforms say for "I do not know".
  if (zone && zone !== 'Etc/Unknown') place.zone = zone;
  return place;
}

/** Write an instant with an offset: 2026-03-01T23:30:00.123-05:00. */
export const written = (instant: number, offset: number): string =>
  `${new Date(instant + offset * MINUTE).toISOString().slice(0, -1)}${offset < 0 ? '-' : '+'}${two(offset / 60)}:${two(offset % 60)}`;

/** Return the date that an instant has at an offset. */
export const dateAt = (instant: number, offset: number): string => new Date(instant + offset * MINUTE).toISOString().slice(0, 10);

/** Return the minutes east of UTC that a time was written with. */
export function offsetOf(text: string): number {
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(text) ?? [];
  return sign ? (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) : 0;
}

/** Return the whole days from one date to another. */
export const daysBetween = (first: string, last: string): number => Math.round((Date.parse(last) - Date.parse(first)) / (1440 * MINUTE));

/** Return the date so many days later. */
export const plusDays = (date: string, days: number): string => new Date(Date.parse(date) + days * 1440 * MINUTE).toISOString().slice(0, 10);
