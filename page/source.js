// Gives the custom elements what they ask for: their data from the API, and this page's words.

import "./elements.js";
import { get, part } from "./api.js";
import { STATUS, h, locale } from "./dom.js";

// Whom the elements of a view ask. A profile also changes the figures in the header.
export const source = (view) => {
  const user = `v1/users/${part(view.person.user)}`;
  const asked = (path, query) => get(`${path}?${new URLSearchParams(query)}`, view.signal);
  return {
    profile: () => view.refreshFigures(view.signal),
    activity: (span) => asked(`${user}/activity`, { ...span, covered: true, limit: 366 }),
    explain: (date) => asked(`${user}/streak/explain`, { date }),
    leaderboard: (board, query) => asked(`v1/leaderboards/${board}`, query),
    board: (name, query) => asked(`v1/boards/${part(name)}`, query),
    rank: (board, query) => asked(`v1/leaderboards/${board}/users/${part(view.person.user)}`, query),
  };
};

// Makes a custom element with properties.
export const element = (name, attributes, properties) => Object.assign(h(`streakline-${name}`, { lang: locale, ...attributes }), properties);

export const streak = (profile) => element("streak", {}, { labels: STATUS, data: profile });
