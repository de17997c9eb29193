/** What the elements share: whom they ask, what they show meanwhile, and what they say when it fails. */

import type { Source } from './source.js';
import { sheetOf } from './style.js';
import { Texts, type Label, type Labels } from './texts.js';

type Child = Node | string | false | null | undefined;
/** Where there is no browser, importing this package must do no harm: pages are rendered on servers too. */
const Base = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;
const AFTER_REFUSAL: Record<number, Label> = {
  401: 'signed_out', 403: 'forbidden', 410: 'erased', 429: 'rate_limited', 502: 'unavailable', 503: 'unavailable', 504: 'unavailable',
};
/** After these nothing of the person may stay on the screen. */
const NOT_YOURS = [401, 403, 410];

/** Make a node. Text is always set as text: nothing here parses HTML. */
export function h(tag: string, props: Record<string, string | number | boolean | undefined>, ...children: Child[]): HTMLElement {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return node;
}

export abstract class StreaklineElement<Data> extends Base {
  static readonly observedAttributes: readonly string[] = ['lang', 'labels'];

  private readonly root = this.attachShadow({ mode: 'open' });
  private readonly body = h('div', { class: 'root', part: 'root', tabindex: '-1', 'data-key': 'root' });
  private readonly told = h('p', { class: 'unseen', role: 'status' });
  private source: Source | null = null;
  private given: Data | null = null;
  private shown: Data | null = null;
  private problem: unknown;
  private words: Partial<Labels> = {};
  /** Which load is the last one: an earlier one that answers late changes nothing. */
  private turn = 0;
  private isLoading = false;
  private isQueued = false;
  private settled: Promise<void> = Promise.resolve();
  protected texts = new Texts('en', {});

  constructor() {
    super();
    this.root.append(this.body, this.told);
  }

  /** Whom to ask; it is asked at once, and again by `refresh`. null: nobody. What was shown is another's, and goes. */
  get client(): Source | null {
    return this.source;
  }
  set client(client: Source | null) {
    this.source = client ?? null;
    this.clear();
    this.changed();
  }

  /** What to show without asking anybody. null: nothing. */
  get data(): Data | null {
    return this.given;
  }
  set data(data: Data | null) {
    this.given = data ?? null;
    this.clear();
    this.changed();
  }

  /** Words instead of the English ones; also an attribute, as JSON. */
  get labels(): Partial<Labels> {
    return this.words;
  }
  set labels(labels: Partial<Labels>) {
    this.words = labels ?? {};
    this.redraw();
  }

  /** Resolves when what was asked for is shown, or the reason why it is not. */
  get ready(): Promise<void> {
    return this.settled;
  }

  /** Ask again. What is shown stays until the answer is there. Resolves as `ready`. */
  refresh(): Promise<void> {
    this.changed();
    return this.settled;
  }

  connectedCallback(): void {
    // What a page set before this class was known is the element's own, and hides the accessors.
    for (const name of ['labels', 'data', 'client'] as const) {
      if (!Object.hasOwn(this, name)) continue;
      const value = this[name];
      Reflect.deleteProperty(this, name);
      Object.assign(this, { [name]: value });
    }
    this.root.adoptedStyleSheets = [sheetOf(this.ownerDocument)];
    this.changed();
  }

  disconnectedCallback(): void {
    this.turn += 1;
    this.isLoading = false;
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (before === after) return;
    if (name === 'labels') this.words = parsed(after);
    if (name === 'lang' || name === 'labels') this.redraw();
    else this.changed(name);
  }

  /** Ask the source for what is to be shown. */
  protected abstract load(source: Source): Promise<Data>;
  /** Return the nodes that show it. */
  protected abstract draw(data: Data): Node[];
  /** Return what the attributes alone say; null: nothing. */
  protected fromAttributes(): Data | null {
    return null;
  }
  /** Return where the keyboard belongs after a drawing, if it was at a key before. */
  protected keyAfter(key: string): string {
    return key;
  }
  /** Say something to those who do not see the screen. */
  protected say(text: string): void {
    this.told.textContent = text;
  }
  /** Tell the page of something. */
  protected tell(name: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
  }

  /** Load and show, once for all that is changed in one go. */
  protected changed(_?: string): void {
    if (!this.isConnected || this.isQueued) return;
    this.isQueued = true;
    this.settled = Promise.resolve().then(() => this.update());
  }

  private clear(): void {
    this.turn += 1;
    this.shown = null;
    this.problem = undefined;
  }

  private async update(): Promise<void> {
    this.isQueued = false;
    if (!this.isConnected) return;
    const turn = (this.turn += 1);
    const source = this.given === null ? this.source : null;
    if (!source) this.shown = this.given ?? this.fromAttributes();
    this.isLoading = source !== null;
    this.problem = source ? this.problem : undefined;
    this.redraw();
    if (!source) return;
    let shown: Data | null = null;
    let problem: unknown;
    try {
      shown = await this.load(source);
    } catch (error) {
      problem = error ?? new Error('no reason given');
    }
    if (turn !== this.turn) return this.isQueued || this.isLoading ? this.settled : undefined;
    this.isLoading = false;
    this.problem = problem;
    if (problem === undefined || NOT_YOURS.includes(statusOf(problem))) this.shown = shown;
    this.redraw();
    if (problem !== undefined) this.tell('streakline-error', problem);
  }

  /** Show again what is known. The keyboard stays where it is. */
  protected redraw(): void {
    if (!this.isConnected) return;
    this.texts = new Texts(languageOf(this), this.words);
    const focused = (this.root.activeElement as HTMLElement | null)?.dataset['key'];
    this.body.toggleAttribute('data-loading', this.isLoading);
    this.body.setAttribute('aria-busy', String(this.isLoading));
    let nodes: Node[] = [];
    if (this.shown !== null) {
      try {
        nodes = this.draw(this.shown);
      } catch (error) {
        console.error(error); // data of another shape: an app's own mistake
        this.problem = new Error('not the data that this element shows');
      }
    }
    if (this.problem !== undefined && !this.isLoading) nodes.unshift(this.trouble(this.problem));
    else if (this.isLoading && this.shown === null) nodes.unshift(h('p', { class: 'soft', part: 'loading' }, this.texts.say('loading')));
    this.body.replaceChildren(...nodes);
    if (focused) this.focusOn(this.keyAfter(focused));
  }

  /** Move the keyboard to the node of a key, or to the element as a whole if there is none. */
  protected focusOn(key: string): void {
    (this.cellOf(key) ?? this.body).focus();
  }

  protected cellOf(key: string): HTMLElement | null {
    return this.root.querySelector(`[data-key="${key}"]`);
  }

  private trouble(error: unknown): Node {
    const status = statusOf(error);
    const isAway = status === 0 || (error instanceof Error && (error.name === 'Unreachable' || error.name === 'TypeError'));
    const label = AFTER_REFUSAL[status] ?? (isAway ? 'unreachable' : 'failed');
    const again = h('button', { type: 'button', part: 'button', 'data-key': 'again' }, this.texts.say('again'));
    again.addEventListener('click', () => void this.refresh());
    const mayHelp = this.source !== null && !NOT_YOURS.includes(status);
    return h('div', { class: 'trouble', part: 'error', role: 'alert' }, h('p', {}, this.texts.say(label)), mayHelp && again);
  }
}

/** Return the HTTP status of an error, 0 where the service was not reached; -1: it has none. */
function statusOf(error: unknown): number {
  const { status } = Object(error) as { status?: unknown };
  return typeof status === 'number' ? status : -1;
}

function parsed(text: string | null): Partial<Labels> {
  try {
    return Object(JSON.parse(text ?? '{}')) as Partial<Labels>;
  } catch {
    console.error('streakline: the attribute labels is no JSON');
    return {};
  }
}

/** Return the language of an element: its own, or that of what is around it, across shadow roots. */
function languageOf(element: Element): string {
  for (let at: Element | null = element; at; at = at.parentElement ?? ((at.getRootNode() as ShadowRoot).host as Element | undefined) ?? null) {
    const language = at.getAttribute('lang');
    if (language) return language;
  }
  return 'en';
}
