/** Calendar dates, written YYYY-MM-DD. They sort as text. */

import { daysBetween, plusDays } from '../moment.js';

export const WEEK = 7;

/** A month (2026-03) or a year (2026) that is shown. */
export type Period = string;

export const isMonth = (text: string): boolean => isYear(text.slice(0, 4)) && /^\d{4}-(0[1-9]|1[0-2])$/.test(text);
/** A year whose dates, and those of the next one, have four digits: others do not sort as text. */
export const isYear = (text: string): boolean => /^(197[1-9]|19[89]\d|[2-8]\d{3})$/.test(text);
export const firstOf = (period: Period): string => (period.length === 4 ? `${period}-01-01` : `${period}-01`);
export const lastOf = (period: Period): string => plusDays(firstOf(moved(period, 1)), -1);

/** Return the period so many periods later. */
export function moved(period: Period, by: number): Period {
  const [year = 0, month] = period.split('-').map(Number);
  if (month === undefined) return written(year + by);
  const months = year * 12 + month - 1 + by;
  return `${written(Math.floor(months / 12))}-${String((months % 12) + 1).padStart(2, '0')}`;
}

const written = (year: number): string => String(year).padStart(4, '0');

/** Return the months of a period, the newest first, without those that begin after a date. */
export function monthsOf(period: Period, last: string): string[] {
  if (period.length > 4) return [period];
  const months = Array.from({ length: 12 }, (_, index) => `${period}-${String(12 - index).padStart(2, '0')}`);
  return months.filter((month) => firstOf(month) <= last);
}

/** Return the day of the week: 1 is Monday, 7 is Sunday. */
export const weekday = (date: string): number => new Date(`${date}T00:00:00Z`).getUTCDay() || WEEK;

/** Return the first date of the week that a date is in. */
export const weekOf = (date: string, firstDay: number): string => plusDays(date, -((weekday(date) - firstDay + WEEK) % WEEK));

/** Return the number of the week that begins on a Monday (ISO 8601): its Thursday's place in the year. */
export function weekNumber(monday: string): number {
  const thursday = plusDays(monday, 3);
  return 1 + Math.floor(daysBetween(`${thursday.slice(0, 4)}-01-01`, thursday) / WEEK);
}

/** Return the same day so many months later, or the last day of that month if it is shorter. */
export function sameDay(date: string, months: number): string {
  const month = moved(date.slice(0, 7), months);
  const last = lastOf(month);
  const wanted = month + date.slice(7);
  return wanted > last ? last : wanted;
}
