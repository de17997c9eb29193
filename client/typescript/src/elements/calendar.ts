/** `<streakline-calendar>`: what each date of a month or a year was, as a grid that the keyboard walks through. */

import { plusDays } from '../moment.js';
import { firstOf, isMonth, isYear, lastOf, monthsOf, moved, sameDay, WEEK, weekday, weekNumber, weekOf, type Period } from './dates.js';
import { h, StreaklineElement } from './element.js';
import type { CalendarData, DateState, Source } from './source.js';
import type { Label } from './texts.js';

/** Data of one period. earlier: there is something to see before it. */
type Shown = CalendarData & { period?: Period; earlier?: boolean };
type Kind = 'active' | 'covered' | 'missed';

const BEFORE = 'before_first_activity';
// Without the selector some systems show a coloured picture.
const SNOW = '❄\uFE0E';
const SIGNS: Record<DateState, readonly [Kind, string]> = {
  active: ['active', '●'], covered_by_freeze: ['covered', SNOW], repaired: ['covered', '↺'], paused: ['covered', '‖'], rest_day: ['covered', '☾\uFE0E'],
  short_date: ['covered', '–'], skipped_by_zone: ['covered', '–'], amnesty: ['covered', '–'], missed: ['missed', '×'],
};
const KIND_SIGNS: readonly (readonly [Kind, string])[] = [['active', '●'], ['covered', `${SNOW} ‖ ☾\uFE0E`], ['missed', '×']];
const isDate = (key: string): boolean => /^\d{4}-\d\d-\d\d$/.test(key);

/**
 * Attributes: `month` (2026-03) or `year` (2026, or empty for this one); by default this month. `weeks`: numbers of weeks,
 * which then begin on Monday. Events: `streakline-date` when a date is chosen, `streakline-period` when another month or
 * year is shown.
 */
export class CalendarElement extends StreaklineElement<CalendarData> {
  static override readonly observedAttributes = [...StreaklineElement.observedAttributes, 'month', 'year', 'weeks'];

  /** Where the keyboard was sent, and where it is: elsewhere while the other month is loading. */
  private wanted: string | null = null;
  private at = '';
  private view: { today: string; period: Period; earlier: boolean; begin: string } | null = null;
  private toSay: Period | null = null;

  protected async load(source: Source): Promise<Shown> {
    const { as_of, last_activity_date, streak_status } = await source.profile();
    const today = as_of ?? here();
    const period = this.period(today);
    const begin = firstOf(period);
    const [told, before] = await Promise.all([source.activity({ from: begin, to: lastOf(period) }), source.explain(plusDays(begin, -1))]);
    const states: Record<string, DateState> = {};
    for (const { date, reason } of told.covered ?? []) states[date] = reason as DateState;
    for (const { activity_date } of told.activity) states[activity_date] = 'active';
    // An event that waits on the device counts already in its estimate.
    if (streak_status === 'active' && last_activity_date === today) states[today] = 'active';
    const earlier = before.reason !== BEFORE;
    const first = earlier ? begin : Object.keys(states).filter((date) => states[date] === 'active').sort()[0] ?? null;
    return { today, first, states, period, earlier };
  }

  protected override changed(name?: string): void {
    if (name === 'weeks') this.redraw();
    else super.changed(name);
  }

  /** Return the period that the attributes ask for; none begins after today. */
  private period(today: string): Period {
    const isOfYear = this.hasAttribute('year');
    const asked = this.getAttribute(isOfYear ? 'year' : 'month') ?? '';
    const now = today.slice(0, isOfYear ? 4 : 7);
    return (isOfYear ? isYear(asked) : isMonth(asked)) && asked < now ? asked : now;
  }

  protected draw(data: Shown): Node[] {
    const { today, first } = data;
    const period = data.period ?? this.period(today);
    if (!isMonth(period) && !isYear(period)) throw new RangeError(`there is no calendar of ${period}`);
    const earlier = data.earlier ?? (first !== null && first < firstOf(period));
    const end = lastOf(period) < today ? lastOf(period) : today;
    const months = this.months(data, period, earlier);
    this.view = { today, period, earlier, begin: firstOf(months.at(-1)!) };
    this.at = this.wanted !== null && this.wanted.startsWith(period) ? this.wanted : end;
    const stateOf = (date: string): DateState | null => {
      const state = Object.hasOwn(data.states, date) ? data.states[date] : undefined;
      if (state !== undefined && Object.hasOwn(SIGNS, state)) return state;
      return first !== null && first <= date && date < today ? 'missed' : null;
    };
    const counts = counted(firstOf(period), end, stateOf);
    this.announce(period, counts);
    return [
      this.head(period, earlier, lastOf(period) < today),
      first === null && !earlier ? h('p', { class: 'soft', part: 'empty' }, this.texts.say('no_dates')) : this.legend(counts),
      h('div', { class: period.length === 4 ? 'months' : 'months one', part: 'months' }, ...months.map((month) => this.month(month, period.length === 4, stateOf))),
    ];
  }

  /** Return the months to show, the newest first: none before the first activity, of which nothing could be told. */
  private months({ today, first }: Shown, period: Period, earlier: boolean): string[] {
    const all = monthsOf(period, today);
    const from = first ?? today;
    return earlier ? all : all.filter((month) => lastOf(month) >= from || month === all[0]);
  }

  private head(period: Period, earlier: boolean, later: boolean): Node {
    const span = period.length === 4 ? 'year' : 'month';
    const button = (key: 'previous' | 'next', sign: string, isOpen: boolean): Node => {
      const made = h('button', {
        type: 'button', part: 'button', 'data-key': key, 'aria-label': this.texts.say(`${key}_${span}`),
        // A button that is switched off would lose the keyboard.
        'aria-disabled': isOpen ? undefined : 'true',
      }, sign);
      if (isOpen) made.addEventListener('click', () => this.turnTo(moved(period, key === 'next' ? 1 : -1), null));
      return made;
    };
    return h('div', { class: span === 'year' ? 'head' : 'head one', part: 'head' },
      button('previous', '‹', earlier), h('p', { class: 'caption', part: 'title' }, this.named(period)), button('next', '›', later));
  }

  private named(period: Period): string {
    return this.texts.date(firstOf(period), period.length === 4 ? { year: 'numeric' } : { month: 'long', year: 'numeric' });
  }

  private legend(counts: Record<Kind, number>): Node {
    return h('p', { class: 'legend soft', part: 'legend' }, ...KIND_SIGNS.map(([kind, sign]) =>
      h('span', {}, h('span', { 'aria-hidden': 'true' }, `${sign} `), this.texts.say(`count_${kind}`, { n: counts[kind] }))));
  }

  private month(month: string, isTitled: boolean, stateOf: (date: string) => DateState | null): Node {
    const hasWeeks = this.hasAttribute('weeks');
    const firstDay = hasWeeks ? 1 : this.texts.firstDay();
    const days = Array.from({ length: WEEK }, (_, index) => plusDays(weekOf('2026-01-05', firstDay), index));
    const weeks: string[] = [];
    for (let week = weekOf(firstOf(month), firstDay); week <= lastOf(month); week = plusDays(week, WEEK)) weeks.push(week);
    const id = `m${month}`;
    const grid = h('table', { class: 'month', part: 'month', role: 'grid', 'aria-labelledby': id, 'data-month': month },
      h('caption', { id, class: isTitled ? 'caption' : 'unseen', part: 'caption' }, this.named(month)),
      h('thead', {}, h('tr', {},
        hasWeeks && h('th', { scope: 'col' }, h('span', { class: 'unseen' }, this.texts.say('week'))),
        ...days.map((day) => h('th', { scope: 'col', abbr: this.texts.date(day, { weekday: 'long' }) },
          h('span', { 'aria-hidden': 'true' }, this.texts.date(day, { weekday: 'narrow' })),
          h('span', { class: 'unseen' }, this.texts.date(day, { weekday: 'long' })))))),
      h('tbody', {}, ...weeks.map((week) => h('tr', {},
        hasWeeks && h('th', { scope: 'row' }, h('span', { class: 'unseen' }, `${this.texts.say('week')} `), this.texts.number(weekNumber(week))),
        ...days.map((_, index) => this.cell(plusDays(week, index), month, stateOf))))));
    grid.addEventListener('keydown', (event) => this.pressed(event));
    grid.addEventListener('click', (event) => this.clicked(event));
    return grid;
  }

  private cell(date: string, month: string, stateOf: (date: string) => DateState | null): Node {
    if (!date.startsWith(month)) return h('td', { role: 'gridcell' });
    const { today } = this.view!;
    const day = h('span', {}, this.texts.number(Number(date.slice(8))));
    if (date > today) {
      day.append(h('i', {})); // so all numbers of a row stand at one height
      return h('td', { role: 'gridcell', part: 'date later', class: 'soft', 'aria-disabled': 'true' }, day);
    }
    const state = stateOf(date);
    const [kind, sign] = state ? SIGNS[state] : ['', ''];
    // By the style sheet: as text it would be a part of what is seen, which the cell's name has to have in it.
    day.append(h('i', { 'aria-hidden': 'true', 'data-sign': sign }));
    const isToday = date === today;
    const words = [
      this.texts.date(date, { weekday: 'long', day: 'numeric', month: 'long' }), isToday && this.texts.say('today'),
      state && this.texts.say(`date_${state}` as Label),
    ].filter(Boolean);
    return h('td', {
      role: 'gridcell', class: kind || 'none', part: `date ${kind || 'none'}${isToday ? ' today' : ''}`, 'data-key': date,
      'data-state': state ?? undefined, tabindex: date === this.at ? 0 : -1, 'aria-label': words.join(', '),
      'aria-current': isToday ? 'date' : undefined,
    }, day);
  }

  private pressed(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const from = this.wanted ?? this.at;
    const forward = getComputedStyle(this).direction === 'rtl' ? -1 : 1;
    const firstDay = this.hasAttribute('weeks') ? 1 : this.texts.firstDay();
    const inRow = (weekday(from) - firstDay + WEEK) % WEEK;
    const to: Record<string, () => string> = {
      ArrowLeft: () => plusDays(from, -forward), ArrowRight: () => plusDays(from, forward),
      ArrowUp: () => plusDays(from, -WEEK), ArrowDown: () => plusDays(from, WEEK),
      Home: () => plusDays(from, -inRow), End: () => plusDays(from, WEEK - 1 - inRow),
      PageUp: () => sameDay(from, event.shiftKey ? -12 : -1), PageDown: () => sameDay(from, event.shiftKey ? 12 : 1),
    };
    if (event.key === 'Enter' || event.key === ' ') this.chosen(this.at);
    else if (Object.hasOwn(to, event.key)) this.go(to[event.key]!());
    else return;
    event.preventDefault();
  }

  private clicked(event: Event): void {
    const date = (event.target as Element).closest<HTMLElement>('td[data-key]')?.dataset['key'];
    if (!date) return;
    this.go(date);
    this.chosen(date);
  }

  private chosen(date: string): void {
    const state = this.cellOf(date)?.dataset['state'] ?? null;
    this.tell('streakline-date', { date, state });
  }

  /** Move the keyboard to a date; no further than to today, and to the beginning where nothing came before. */
  private go(date: string): void {
    const { today, period, earlier, begin } = this.view!;
    const to = date > today ? today : date < begin && !earlier ? begin : date;
    if (!to.startsWith(period)) {
      this.turnTo(to.slice(0, period.length), to);
      return;
    }
    this.cellOf(this.at)?.setAttribute('tabindex', '-1');
    this.wanted = this.at = to;
    this.cellOf(to)?.setAttribute('tabindex', '0');
    this.focusOn(to);
  }

  private turnTo(period: Period, to: string | null): void {
    this.wanted = to;
    this.toSay = period;
    this.setAttribute(period.length === 4 ? 'year' : 'month', period);
    this.tell('streakline-period', { period });
  }

  /** The keyboard is on a date: when it is drawn anew, on the one that it was sent to. */
  protected override keyAfter(key: string): string {
    return isDate(key) ? this.at : key;
  }

  private announce(period: Period, counts: Record<Kind, number>): void {
    if (period !== this.toSay) return;
    this.toSay = null;
    const said = KIND_SIGNS.map(([kind]) => this.texts.say(`count_${kind}`, { n: counts[kind] }));
    this.say(`${this.named(period)}: ${said.join(', ')}`);
  }
}

function counted(begin: string, end: string, stateOf: (date: string) => DateState | null): Record<Kind, number> {
  const counts = { active: 0, covered: 0, missed: 0 };
  for (let date = begin; date <= end; date = plusDays(date, 1)) {
    const state = stateOf(date);
    if (state) counts[SIGNS[state][0]] += 1;
  }
  return counts;
}

/** Return today's date by this device. */
function here(): string {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}
