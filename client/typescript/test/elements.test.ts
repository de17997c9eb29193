/** What of the elements needs no browser: dates, words, and that importing them on a server does no harm. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMonth, isYear, lastOf, monthsOf, moved, sameDay, weekday, weekNumber, weekOf } from '../src/elements/dates.js';
import { ENGLISH, Texts } from '../src/elements/texts.js';

test('a server may import the elements', async () => {
  assert.equal(typeof globalThis.HTMLElement, 'undefined');
  const { StreakElement } = await import('../src/elements/index.js');
  assert.equal(typeof StreakElement, 'function');
});

test('periods: a month or a year, before and after, across years', () => {
  assert.deepEqual(['2026-03', '2026-13', '2026-00', '26-03', '1970-05', '1971-01', '2026-3', '', '9999-12'].map(isMonth),
    [true, false, false, false, false, true, false, false, false]);
  assert.deepEqual(['2026', '1970', '1971', '0000', '20260', 'x'].map(isYear), [true, false, true, false, false, false]);
  assert.equal(moved('2026-01', -1), '2025-12');
  assert.equal(moved('2025-12', 1), '2026-01');
  assert.equal(moved('2026', -1), '2025');
  assert.deepEqual(['2024-02', '2026-02', '2100-02', '2000-02', '2026-12', '2026'].map(lastOf),
    ['2024-02-29', '2026-02-28', '2100-02-28', '2000-02-29', '2026-12-31', '2026-12-31']);
  assert.deepEqual(monthsOf('2026', '2026-03-01'), ['2026-03', '2026-02', '2026-01']);
  assert.deepEqual(monthsOf('2026-03', '2026-03-01'), ['2026-03']);
});

test('the same day of a shorter month is its last', () => {
  assert.equal(sameDay('2026-03-31', -1), '2026-02-28');
  assert.equal(sameDay('2024-03-31', -1), '2024-02-29');
  assert.equal(sameDay('2024-02-29', -12), '2023-02-28');
  assert.equal(sameDay('2025-12-15', 1), '2026-01-15');
});

test('weeks: their first day, and their number by ISO 8601', () => {
  assert.equal(weekday('2026-01-05'), 1);
  assert.equal(weekday('2026-01-04'), 7);
  assert.equal(weekOf('2026-01-04', 1), '2025-12-29');
  assert.equal(weekOf('2026-01-04', 7), '2026-01-04');
  assert.equal(weekOf('2026-01-05', 6), '2026-01-03');
  assert.deepEqual(['2025-12-29', '2020-12-28', '2021-01-04', '2025-06-09'].map(weekNumber), [1, 53, 1, 24]);
});

test('words: plurals of the language of the words, numbers and dates of the page', () => {
  const english = new Texts('en-GB', {});
  assert.equal(english.say('streak', { n: 1 }), 'day in a row');
  assert.equal(english.say('longest', { n: 10_000 }), 'Longest: 10,000 days');
  const arabic = new Texts('ar-EG', { streak: { one: 'يوم', two: 'يومان', few: 'أيام', other: 'يومًا' } });
  assert.equal(arabic.say('streak', { n: 2 }), 'يومان');
  assert.equal(arabic.say('streak', { n: 3 }), 'أيام');
  assert.equal(arabic.say('longest', { n: 2 }), 'Longest: ٢ days');
  assert.equal(new Texts('de', {}).date('2026-03-01', { day: 'numeric', month: 'long' }), '1. März');
});

test('dates are of one calendar, whatever the country counts by', () => {
  for (const language of ['fa-IR', 'th-TH', 'ar-SA', 'en-u-ca-buddhist']) {
    const told = new Intl.DateTimeFormat(language, { calendar: 'gregory', timeZone: 'UTC', year: 'numeric', month: 'long' }).format(new Date('2026-03-01'));
    assert.equal(new Texts(language, {}).date('2026-03-01', { month: 'long', year: 'numeric' }), told);
  }
});

test('a language that is none counts as English, a name keeps its direction to itself', () => {
  for (const language of ['', 'xx-', '!!', 'constructor', 'de_DE']) assert.equal(new Texts(language, {}).locale, 'en');
  const told = new Texts('en', {}).say('own_alias', { name: '{n} $& \u202Eevil' });
  assert.equal(told, 'Others see you as \u2068{n} $& \u202Eevil\u2069.');
  assert.equal(new Texts('en', {}).ago('nonsense'), '');
  assert.match(new Texts('en', {}).ago(new Date(Date.now() - 7_200_000).toISOString()), /^2 hours ago$/);
  assert.ok(Object.values(ENGLISH).every(Boolean));
});
