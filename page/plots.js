// Plots in SVG, before and after. A row is [name, before, after]; before is null where there is one value alone.

import { h, svg, table } from "./dom.js";

const WIDTH = 360, LEFT = 8, RIGHT = 8, TOP = 24, BOTTOM = 28, HEIGHT = 200;
// A text is 13 high, "100.0 %" 48 wide.
const BAR = 16, GAP = 10, VALUE_WIDTH = 80, AXIS_WIDTH = 50, LABELS_MAX = 6;

const legend = () => ["before", "after"].map((kind, place) => svg("text", { class: kind, x: LEFT + 60 * place, y: 12 }, kind));
const isPair = (rows) => rows.some(([, before]) => before !== null);

// Lying bars: a name above, one bar or two below, each with its value.
const bars = (rows, shown) => {
  const most = Math.max(1, ...rows.flatMap(([, before, after]) => [before ?? 0, after]));
  const parts = isPair(rows) ? legend() : [];
  let y = parts.length ? TOP : 4;
  for (const [name, before, after] of rows) {
    parts.push(svg("text", { x: LEFT, y: y + 10 }, name));
    y += 14;
    for (const [kind, value] of [["before", before], ["after", after]]) {
      if (value === null) continue;
      const size = Math.max(0, value) / most * (WIDTH - LEFT - RIGHT - VALUE_WIDTH);
      parts.push(svg("rect", { class: kind, x: LEFT, y, width: size.toFixed(1), height: BAR - 2 }),
        svg("text", { x: (LEFT + size + 4).toFixed(1), y: y + BAR - 4 }, shown(value)));
      y += BAR;
    }
    y += GAP;
  }
  return [parts, y];
};

// Two lines over names at even distances; values are shares of 1.
const steps = (rows, shown) => {
  const across = (place) => LEFT + AXIS_WIDTH + place * (WIDTH - LEFT - RIGHT - AXIS_WIDTH - 14) / Math.max(1, rows.length - 1);
  const down = (value) => TOP + (1 - value) * (HEIGHT - TOP - BOTTOM);
  const every = Math.ceil(rows.length / LABELS_MAX);
  const axes = [0, 0.5, 1].flatMap((value) => [
    svg("line", { class: "grid", x1: LEFT + AXIS_WIDTH, x2: WIDTH - RIGHT, y1: down(value), y2: down(value) }),
    svg("text", { x: LEFT, y: down(value) + 4 }, shown(value)),
  ]);
  const names = rows.map(([name], place) => place % every === 0
    && svg("text", { x: across(place).toFixed(1), y: HEIGHT - 8, "text-anchor": "middle" }, name));
  const lines = ["before", "after"].map((kind, column) => svg("polyline", {
    class: `line ${kind}`, points: rows.map((row, place) => `${across(place).toFixed(1)},${down(row[column + 1]).toFixed(1)}`).join(" "),
  }));
  // The browser shows the figures of what is under the pointer.
  const width = rows.length > 1 ? across(1) - across(0) : WIDTH;
  const areas = rows.map(([name, before, after], place) => svg("rect", {
    class: "hit", x: (across(place) - width / 2).toFixed(1), y: TOP, width: width.toFixed(1), height: HEIGHT - TOP - BOTTOM,
  }, svg("title", {}, `${name}: before ${shown(before)}, after ${shown(after)}`)));
  return [[...legend(), ...axes, ...names, ...lines, ...areas], HEIGHT];
};

// Makes a figure: the plot for those who see it, and the table behind it for everybody.
// head: what its rows are named by.
export const figure = (id, title, text, head, rows, shown, areSteps = false) => {
  const [parts, height] = (areSteps ? steps : bars)(rows, shown);
  const pair = isPair(rows);
  const cells = rows.map(([name, before, after]) => pair ? [name, shown(before ?? 0), shown(after)] : [name, shown(after)]);
  return h("figure", { class: "plot" }, h("figcaption", {}, h("h3", { id: `${id}-title` }, title)),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-text` },
      svg("desc", { id: `${id}-text` }, text), parts),
    h("details", {}, h("summary", {}, "The figures behind it"), table(title, pair ? [head, "Before", "After"] : [head, "Users"], cells, "None.")));
};
