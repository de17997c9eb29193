/** `<streakline-streak>`: how long a streak is, and what today means for it. */

import { h, StreaklineElement } from './element.js';
import type { Source, StreakData, StreakStatus } from './source.js';

const STATUSES: readonly string[] = ['active', 'at_risk', 'broken', 'none'];

/** Attributes: `days` and `status` instead of data; `longest`: show the longest streak as well. */
export class StreakElement extends StreaklineElement<StreakData> {
  static override readonly observedAttributes = [...StreaklineElement.observedAttributes, 'days', 'status', 'longest'];

  private said = '';

  protected load(source: Source): Promise<StreakData> {
    return source.profile();
  }

  protected override fromAttributes(): StreakData | null {
    const days = Number(this.getAttribute('days') || NaN);
    if (!Number.isSafeInteger(days) || days < 0) return null;
    const status = this.getAttribute('status') ?? '';
    return { current_streak: days, streak_status: STATUSES.includes(status) ? (status as StreakStatus) : days ? 'active' : 'none' };
  }

  protected override changed(name?: string): void {
    if (name === 'longest') this.redraw();
    else super.changed(name);
  }

  protected draw({ current_streak: days, longest_streak: longest, streak_status: status, is_estimate }: StreakData): Node[] {
    const texts = this.texts;
    const words = `${texts.number(days)} ${texts.say('streak', { n: days })}`;
    if (this.said !== '' && this.said !== words) this.say(words);
    this.said = words;
    return [
      // The space between number and words is for the ear.
      h('p', { class: 'streak', part: 'streak' },
        h('b', { part: 'number' }, texts.number(days)), ' ', h('span', { part: 'unit' }, texts.say('streak', { n: days }))),
      ...(STATUSES.includes(status) ? [h('p', { class: 'soft', part: 'status' }, texts.say(status))] : []),
      ...(this.hasAttribute('longest') && longest !== undefined
        ? [h('p', { class: 'soft', part: 'longest' }, texts.say('longest', { n: longest }))] : []),
      ...(is_estimate ? [h('p', { class: 'soft', part: 'estimate' }, texts.say('estimate'))] : []),
    ];
  }
}
