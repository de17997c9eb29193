/** Reads what storage has as JSON. What is damaged there is put aside, told of, and stops nothing else. */

import type { KeyValues } from './platform/platform.js';

const DAMAGED = 'damaged:';

export class Kept {
  private readonly told = new Set<string>();

  /** damaged: is told of each text that cannot be read, and of its new name. */
  constructor(private readonly storage: KeyValues, private readonly damaged: (reason: string) => void) {}

  /** Return what a text says, if it is an object with this field; else null, and the text gets another name. */
  async parsed<T>(key: string, text: string, field: keyof T & string): Promise<T | null> {
    const found = json(text) as T | null | undefined;
    if (typeof found === 'object' && found?.[field]) return found;
    const aside = DAMAGED + key;
    try {
      await this.storage.setItem(aside, text);
      await this.storage.removeItem(key);
    } catch {
      // A full disk: it is told of again.
    }
    this.damaged(`${key} cannot be read, and is kept as ${aside}`);
    return null;
  }

  /** Tell once of what storage does not give: it hides nothing else. */
  unread(key: string, error: unknown): null {
    if (!this.told.has(key)) this.damaged(`${key} cannot be read: ${String(error)}`);
    this.told.add(key);
    return null;
  }

  /** Return what is kept under a key; null: nothing, or nothing that can be read. Throws what storage throws. */
  async read<T>(key: string, field: keyof T & string): Promise<T | null> {
    const text = await this.storage.getItem(key);
    return text === null ? null : this.parsed<T>(key, text, field);
  }
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
