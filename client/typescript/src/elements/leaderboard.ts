/** `<streakline-leaderboard>`: the best of a board, the user's own line marked, and his rank below; of a board of the book also the rows around it. */

import { h, StreaklineElement } from './element.js';
import type { Board, BoardData, BoardEntry, Region, Source } from './source.js';

const TOP = 10;
const TOP_MAX = 100;

/**
 * Attributes: `board` (streaks, points, or the name of a board of the book), `region`, or `period` and `group` of a board of the
 * book, `limit` (1 to 100, by default 10), `heading` and `score` for own words.
 */
export class LeaderboardElement extends StreaklineElement<BoardData> {
  static override readonly observedAttributes = [...StreaklineElement.observedAttributes, 'board', 'region', 'period', 'group', 'limit', 'heading', 'score'];

  private get board(): Board {
    return this.getAttribute('board') === 'points' || this.ofBook ? 'points' : 'streaks';
  }

  /** The name of a board of the book; "": it is one of all time. */
  private get ofBook(): string {
    const name = this.getAttribute('board') ?? '';
    return name === 'points' || name === 'streaks' ? '' : name;
  }

  private get limit(): number {
    const limit = Number(this.getAttribute('limit') || TOP);
    return Number.isInteger(limit) ? Math.min(TOP_MAX, Math.max(1, limit)) : TOP;
  }

  protected async load(source: Source): Promise<BoardData> {
    if (this.ofBook && source.board) {
      const [period, group] = [this.getAttribute('period'), this.getAttribute('group')];
      return source.board(this.ofBook, { ...(period && { period }), ...(group && { group }), limit: this.limit });
    }
    const region = this.getAttribute('region') as Region | null;
    const query = region ? { region } : {};
    const [top, own] = await Promise.all([
      source.leaderboard(this.board, { ...query, limit: this.limit }),
      // Without it the board is still worth showing.
      source.rank(this.board, query).catch(() => null),
    ]);
    return { ...top, own };
  }

  protected override changed(name?: string): void {
    if (name === 'heading' || name === 'score') this.redraw();
    else super.changed(name);
  }

  protected draw(data: BoardData): Node[] {
    const heading = this.getAttribute('heading') ?? this.texts.say(this.board);
    const footer = h('p', { class: 'soft', part: 'footer' }, this.footer(data));
    if (!data.entries.length) {
      return [h('p', { class: 'caption', part: 'caption' }, heading), h('p', { class: 'soft', part: 'empty' }, this.texts.say('nobody')), footer];
    }
    const score = this.getAttribute('score') ?? this.texts.say(`score_${this.board}`);
    const heads = [this.texts.say('rank'), this.texts.say('who'), score].map((head) => h('th', { scope: 'col' }, head));
    return [
      h('table', { class: 'board', part: 'table' },
        h('caption', { class: 'caption', part: 'caption' }, heading),
        h('thead', {}, h('tr', {}, ...heads)),
        h('tbody', {}, ...data.entries.map((entry) => this.row(entry)), ...this.near(data))),
      footer,
    ];
  }

  /** The rows around the user, if the list does not show the user: with a gap before them, unless they follow it. */
  private near({ entries, around = [] }: BoardData): Node[] {
    if (entries.some((entry) => entry.is_me)) return [];
    const last = entries[entries.length - 1]?.rank ?? 0;
    const rows = around.filter(({ rank, is_me }) => is_me || rank > last);
    const gap = h('tr', { 'aria-hidden': 'true', part: 'gap' }, h('td', { colspan: '3' }, '\u22ef'));
    return rows.length ? [gap, ...rows.map((entry) => this.row(entry))] : [];
  }

  private row({ rank, alias, score, is_me }: BoardEntry): Node {
    return h('tr', { part: is_me ? 'row own' : 'row', class: is_me ? 'own' : undefined, 'aria-current': is_me ? 'true' : undefined },
      h('td', {}, this.texts.number(rank)),
      // A name has whatever direction it has.
      h('th', { scope: 'row' }, h('bdi', { part: 'name' }, alias ?? this.texts.say('somebody')), is_me ? ` ${this.texts.say('you')}` : null),
      h('td', {}, this.texts.number(score)));
  }

  private footer({ own: rank, me, as_of, state, ends_at }: BoardData): string {
    const own = me ?? rank;
    const ago = as_of ? this.texts.ago(as_of) : '';
    return [
      own && (own.rank ? this.texts.say('own_rank', { n: own.rank }) : this.texts.say('no_rank')),
      rank?.alias && this.texts.say('own_alias', { name: rank.alias }),
      state === 'open' && ends_at && this.texts.say('ends', { date: this.texts.ago(ends_at) }),
      state && state !== 'open' && this.texts.say(state),
      ago && this.texts.say('as_of', { date: ago }),
    ].filter(Boolean).join(' ');
  }
}
