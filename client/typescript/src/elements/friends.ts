/** `<streakline-friends>`: a user's friends, the streak that the user has with each, and what today is for it. */

import { h, StreaklineElement } from './element.js';
import type { FriendsData, PairData, Source } from './source.js';

/** Attributes: `limit` (by default all), `heading` for own words. The longest streaks come first. */
export class FriendsElement extends StreaklineElement<FriendsData> {
  static override readonly observedAttributes = [...StreaklineElement.observedAttributes, 'limit', 'heading'];

  protected load(source: Source): Promise<FriendsData> {
    if (!source.friends) throw new Error('the client knows no friends');
    return source.friends();
  }

  protected override changed(name?: string): void {
    if (name === 'heading' || name === 'limit') this.redraw();
    else super.changed(name);
  }

  protected draw({ friends }: FriendsData): Node[] {
    const heading = this.getAttribute('heading') ?? this.texts.say('friends');
    if (!friends.length) {
      return [h('p', { class: 'caption', part: 'caption' }, heading), h('p', { class: 'soft', part: 'empty' }, this.texts.say('no_friends'))];
    }
    const limit = Number(this.getAttribute('limit')) || friends.length;
    const shown = [...friends].sort((one, other) => other.streak - one.streak).slice(0, Math.max(1, limit));
    const heads = (['friend', 'today_head', 'score_streaks'] as const).map((label) => h('th', { scope: 'col' }, this.texts.say(label)));
    return [
      h('table', { class: 'board pairs', part: 'table' },
        h('caption', { class: 'caption', part: 'caption' }, heading),
        h('thead', {}, h('tr', {}, ...heads)),
        h('tbody', {}, ...shown.map((friend) => this.row(friend)))),
    ];
  }

  private row(friend: PairData): Node {
    return h('tr', { part: friend.at_risk ? 'row at-risk' : 'row' },
      // A name has whatever direction it has.
      h('th', { scope: 'row' }, h('bdi', { part: 'name' }, friend.alias ?? friend.user_id)),
      h('td', { class: 'soft', part: 'today' }, this.today(friend)),
      h('td', {}, this.texts.number(friend.streak)));
  }

  /** Say who was active on the pair's today. */
  private today({ active_today: you, friend_active_today: friend, at_risk: atRisk }: PairData): string {
    if (you && friend) return this.texts.say('pair_both');
    if (!atRisk) return this.texts.say(you || friend ? 'pair_done' : 'pair_nobody');
    if (!you && !friend) return this.texts.say('pair_missing');
    return this.texts.say(you ? 'pair_you' : 'pair_friend');
  }
}
