/** `<streakline-leaderboard>`: the best of a board, the user's own line marked, and his rank below. */

import { h, StreaklineElement } from './element.js';
import type { Board, BoardData, BoardEntry, Region, Source } from './source.js';

const TOP = 10;
const TOP_MAX = 100;

/** Attributes: `board` (streaks or points), `region`, `limit` (1 to 100, by default 10), `heading` and `score` for own words. */
export class LeaderboardElement extends StreaklineElement<BoardData> {
  static override readonly observedAttributes = [...StreaklineElement.observedAttributes, 'board', 'region', 'limit', 'heading', 'score'];

  private get board(): Board {
    return this.getAttribute('board') === 'points' ? 'points' : 'streaks';
  }

  private get limit(): number {
    const limit = Number(this.getAttribute('limit') || TOP);
    return Number.isInteger(limit) ? Math.min(TOP_MAX, Math.max(1, limit)) : TOP;
  }

  protected async load(source: Source): Promise<BoardData> {
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
        h('tbody', {}, ...data.entries.map((entry) => this.row(entry)))),
      footer,
    ];
  }

  private row({ rank, alias, score, is_me }: BoardEntry): Node {
    return h('tr', { part: is_me ? 'row own' : 'row', class: is_me ? 'own' : undefined, 'aria-current': is_me ? 'true' : undefined },
      h('td', {}, this.texts.number(rank)),
      // A name has whatever direction it has.
      h('th', { scope: 'row' }, h('bdi', { part: 'name' }, alias), is_me ? ` ${this.texts.say('you')}` : null),
      h('td', {}, this.texts.number(score)));
  }

  private footer({ own, as_of }: BoardData): string {
    const ago = as_of ? this.texts.ago(as_of) : '';
    return [
      own && (own.rank ? this.texts.say('own_rank', { n: own.rank }) : this.texts.say('no_rank')),
      own?.alias && this.texts.say('own_alias', { name: own.alias }),
      ago && this.texts.say('as_of', { date: ago }),
    ].filter(Boolean).join(' ');
  }
}
