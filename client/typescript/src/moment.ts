/** Times as the API writes them, and the place where they were read. */

const MINUTE = 60_000;
const two = (value: number): string => String(Math.trunc(Math.abs(value))).padStart(2, '0');

/**
 * Names as the time zone database has them: an area with a place, EST5EDT, or a word. Devices also say GMT+03:00,
 * SystemV/PST8, posix/Europe/Berlin or localtime, which a service does not know, or takes for its own.
 */
const ZONE_NAME = /^((Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)\/[\w+/-]+|[A-Z]{3}\dS?[A-Z]{3}|[A-Z][A-Za-z-]*)$/;
const NO_ZONES = ['Etc/Unknown', 'Factory'];

/** Where a device is: minutes east of UTC at that moment, and the zone's name if the platform has one that the service may know. */
export interface Place { offset: number; zone?: string }

/** Return where this device is at an instant. */
export function here(wall: number): Place {
  const place: Place = { offset: -new Date(wall).getTimezoneOffset() };
  const zone = ownZone();
  if (isZoneName(zone)) place.zone = zone;
  return place;
}

/** What the platform calls its zone. Some have no Intl, or one that throws or lacks parts. */
function ownZone(): unknown {
  try {
    return Intl.DateTimeFormat().resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

/** Whether a platform's name of a zone is one that a service may know. */
export const isZoneName = (name: unknown): name is string => typeof name === 'string' && ZONE_NAME.test(name) && !NO_ZONES.includes(name);

/** Return the offset that a time was written with, as text; "": it has none. */
export const offsetText = (text: string): string => /[+-]\d\d:\d\d$/.exec(text)?.[0] ?? '';

/** Write an instant with an offset: 2026-03-01T23:30:00.123-05:00. */
export const written = (instant: number, offset: number): string =>
  `${new Date(instant + offset * MINUTE).toISOString().slice(0, -1)}${offset < 0 ? '-' : '+'}${two(offset / 60)}:${two(offset % 60)}`;

/** Return the date that an instant has at an offset. start: when dates begin by the clock there, such as 03:00; none: at midnight. */
export const dateAt = (instant: number, offset: number, start?: string): string =>
  new Date(instant + (offset - offsetOf(`+${start}`)) * MINUTE).toISOString().slice(0, 10);

/** Return the minutes east of UTC that a time was written with. */
export function offsetOf(text: string): number {
  const [hours = 0, minutes = 0] = offsetText(text).slice(1).split(':').map(Number);
  return (offsetText(text).startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}

/** Return the whole days from one date to another. */
export const daysBetween = (first: string, last: string): number => Math.round((Date.parse(last) - Date.parse(first)) / (1440 * MINUTE));

/** Return the date so many days later. */
export const plusDays = (date: string, days: number): string => new Date(Date.parse(date) + days * 1440 * MINUTE).toISOString().slice(0, 10);
