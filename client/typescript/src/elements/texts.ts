/** The words of the elements. English is given; an app sets others as `labels`. */

/** A text, or one for each plural category of the language. {n} is the number, {name} a name, {date} a date. */
export type Forms = string | ({ other: string } & Partial<Record<Intl.LDMLPluralRule, string>>);

export const ENGLISH = {
  loading: 'Loading ...',
  again: 'Try again',
  signed_out: 'Your sign-in has ended. Sign in again.',
  forbidden: 'Your sign-in does not reach this.',
  erased: 'This account was erased.',
  rate_limited: 'That was a lot at once. Try again in a minute.',
  unavailable: 'The service is busy. Try again in a moment.',
  unreachable: 'The service cannot be reached. Check your connection.',
  failed: 'This could not be loaded.',

  streak: { one: 'day in a row', other: 'days in a row' } as Forms,
  active: 'Today counts already.',
  at_risk: 'Do something today to keep it.',
  broken: 'It ended. Today can begin a new one.',
  none: 'The first day that counts begins it.',
  longest: { one: 'Longest: {n} day', other: 'Longest: {n} days' } as Forms,
  estimate: 'Not confirmed yet.',

  previous_month: 'Previous month',
  next_month: 'Next month',
  previous_year: 'Previous year',
  next_year: 'Next year',
  week: 'Week',
  today: 'today',
  date_active: 'active',
  date_covered_by_freeze: 'covered by a freeze',
  date_repaired: 'repaired',
  date_paused: 'paused',
  date_rest_day: 'a rest day',
  date_short_date: 'cut short: no miss',
  date_skipped_by_zone: 'skipped by the time zone',
  date_amnesty: 'an outage: no miss',
  date_missed: 'missed',
  count_active: '{n} active' as Forms,
  count_covered: '{n} covered by a freeze, a pause or a rest day' as Forms,
  count_missed: '{n} missed' as Forms,
  no_dates: 'No active day yet.',

  streaks: 'Longest streaks',
  points: 'Most points',
  rank: 'Rank',
  who: 'Who',
  score_streaks: 'Days',
  score_points: 'Points',
  you: '(you)',
  nobody: 'Nobody is on this board yet.',
  own_rank: 'You are number {n}.',
  no_rank: 'You are not on this board yet.',
  own_alias: 'Others see you as {name}.',
  as_of: 'As of {date}.',
  somebody: 'somebody',
  ends: 'It ends {date}.',
  provisional: 'It has ended; late points may still come.',
  final: 'This is the final result.',

  friends: 'Streaks with friends',
  no_friends: 'No friends yet.',
  friend: 'Friend',
  today_head: 'Today',
  pair_both: 'Both were active.',
  pair_done: 'Nothing is missing.',
  pair_nobody: 'Nobody was active yet.',
  pair_missing: 'Both must still be active.',
  pair_you: 'You were active, your friend not yet.',
  pair_friend: 'Your friend was active, you not yet.',
};

export type Labels = { [Name in keyof typeof ENGLISH]: (typeof ENGLISH)[Name] };
export type Label = keyof Labels;

const FALLBACK = 'en';
const MINUTE = 60;
const UNITS = [['day', 1440 * MINUTE], ['hour', 60 * MINUTE], ['minute', MINUTE]] as const;

/** Words, numbers and dates of one language. A language that is none counts as English. */
export class Texts {
  readonly locale: string;

  constructor(language: string, private readonly own: Partial<Labels>) {
    this.locale = known(language);
  }

  /** Return a text with its values. The value `n` also chooses the plural form. */
  say(label: Label, values: { n?: number; name?: string; date?: string } = {}): string {
    const own = this.own[label];
    const forms: Forms = own ?? ENGLISH[label];
    // English words keep English plurals, whatever the language around them.
    const rule = new Intl.PluralRules(own === undefined ? FALLBACK : this.locale).select(values.n ?? 0);
    const text = typeof forms === 'string' ? forms : forms[rule] ?? forms.other;
    return String(text).replace(/\{(n|name|date)\}/g, (whole, name: 'n' | 'name' | 'date') => {
      const value = values[name];
      if (value === undefined) return whole;
      return typeof value === 'number' ? this.number(value) : isolated(value);
    });
  }

  number(value: number): string {
    return new Intl.NumberFormat(this.locale).format(value);
  }

  /** Write a calendar date. It is no instant, so it is read and written in UTC, and no zone moves it. */
  date(date: string, style: Intl.DateTimeFormatOptions): string {
    const format = new Intl.DateTimeFormat(this.locale, { ...style, calendar: 'gregory', timeZone: 'UTC' });
    return format.format(new Date(`${date}T00:00:00Z`));
  }

  /** Write an instant by its distance from now: "5 minutes ago". "" for a text that is no instant. */
  ago(instant: string): string {
    const seconds = (Date.parse(instant) - Date.now()) / 1000;
    if (Number.isNaN(seconds)) return '';
    const format = new Intl.RelativeTimeFormat(this.locale, { numeric: 'auto' });
    for (const [unit, size] of UNITS) if (Math.abs(seconds) >= size) return format.format(Math.round(seconds / size), unit);
    return format.format(Math.round(seconds), 'second');
  }

  /** Return the day that a week begins with: 1 is Monday, 7 is Sunday. */
  firstDay(): number {
    const locale = new Intl.Locale(this.locale) as Intl.Locale & { getWeekInfo?: () => { firstDay: number }; weekInfo?: { firstDay: number } };
    return (locale.getWeekInfo?.() ?? locale.weekInfo)?.firstDay ?? 1;
  }
}

/** A name of whatever direction, which leaves the words around it in theirs. */
const isolated = (text: string): string => `\u2068${text}\u2069`;

function known(language: string): string {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(language).length ? language : FALLBACK;
  } catch {
    return FALLBACK;
  }
}
