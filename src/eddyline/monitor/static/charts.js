// Pictures of a query, drawn of plain data. All text is set as text: nothing is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

// Costs of a tuple in seconds, from where on a colour stands, cheapest first.
export const HEAT = [
  { from: 0, name: "below 1 µs a row" },
  { from: 1e-6, name: "1 to 10 µs" },
  { from: 1e-5, name: "10 to 100 µs" },
  { from: 1e-4, name: "0.1 to 1 ms" },
  { from: 1e-3, name: "1 ms and more" },
];

const COLOURS = 6;

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  return filled(made, attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

export function compact(number) {
  if (number < 100000) return count(number);
  const units = ["k", "M", "B", "T"];
  let value = number;
  let unit = "";
  for (unit of units) {
    value /= 1000;
    if (value < 999.5) break;
  }
  return threeDigits(value) + unit;
}

export function duration(seconds) {
  if (seconds >= 7200) {
    const minutes = Math.round(seconds / 60);
    return `${count(Math.floor(minutes / 60))} h ${minutes % 60} min`;
  }
  if (seconds >= 120) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds >= 1) return `${threeDigits(seconds)} s`;
  if (seconds >= 1e-3) return `${threeDigits(seconds * 1e3)} ms`;
  if (seconds >= 1e-6) return `${threeDigits(seconds * 1e6)} µs`;
  return seconds > 0 ? `${threeDigits(seconds * 1e9)} ns` : "0 s";
}

export function percent(part, whole) {
  if (!whole) return "-";
  const share = (100 * part) / whole;
  if (part === 0 || part === whole) return `${Math.round(share)} %`;
  if (share < 0.05) return "<0.1 %";
  if (share < 100 && share >= 99.95) return ">99.9 %";
  return `${share.toFixed(1)} %`;
}

function threeDigits(value) {
  if (value < 9.995) return value.toFixed(2);
  return value < 99.95 ? value.toFixed(1) : count(value);
}

export function shortened(text, most) {
  const signs = Array.from(text);
  return signs.length <= most ? text : signs.slice(0, most - 1).join("").trimEnd() + "…";
}

function heat(seconds) {
  let level = 0;
  while (level + 1 < HEAT.length && seconds >= HEAT[level + 1].from) level += 1;
  return level;
}

// The order that most rows were routed in lately, with the steps that it leaves out at its end.
export function orderNow(block) {
  const slices = block.run ? block.run.slices : [];
  const latest = slices.length ? slices[slices.length - 1].orders : [];
  const named = latest.filter((share) => share.order.length);
  const best = named.reduce((a, b) => (a === null || b.rows > a.rows ? b : a), null);
  const order = best ? [...best.order] : [];
  for (let step = 0; step < block.steps.length; step += 1) {
    if (!order.includes(step)) order.push(step);
  }
  return order.filter((step) => step < block.steps.length);
}

export function orderName(order, labels) {
  return order.length ? order.map((step) => labels[step] ?? step + 1).join(" → ") : "other orders";
}

// Tuples as a river: as wide as they are many, as hot as a step costs; what a step drops falls out.
export function river(block, narrow) {
  // The SteM of the input that stays in place is never asked.
  const steps = orderNow(block).map((position) => block.steps[position])
    .filter((step) => step.came || !step.stem);
  const out = block.run.rows_out;
  const first = steps.length ? steps[0].came : out;
  const entered = block.inputs.length ? first : block.run.rows_in;
  const most = Math.max(entered, out, 1, ...steps.map((step) => Math.max(step.came, step.went)));
  const full = 110; // pixels of the widest flow
  const middle = narrow ? 70 : 106;
  const gap = narrow ? 96 : Math.max(118, Math.min(200, 780 / (steps.length + 1)));
  const start = narrow ? 26 : 96;
  const box = 14; // pixels that a step itself is long
  const end = start + gap * steps.length;
  const size = narrow ? [340, end + 46] : [end + 110, 250];
  const width = (tuples) => (tuples ? Math.max((full * tuples) / most, 1.5) : 0);
  const at = (along, across) => (narrow ? [across, along] : [along, across])
    .map((number) => number.toFixed(1)).join(" ");
  const parts = [];

  // A stretch of water: edges at the places across where it begins and where it ends.
  const flow = (from, to, [top, bottom], [topAfter, bottomAfter], name) => {
    const bend = (from + to) / 2;
    parts.push(drawn("path", { class: name, d: `M${at(from, top)}` +
      `C${at(bend, top)} ${at(bend, topAfter)} ${at(to, topAfter)}L${at(to, bottomAfter)}` +
      `C${at(bend, bottomAfter)} ${at(bend, bottom)} ${at(from, bottom)}Z` }));
  };
  const centred = (wide) => [middle - wide / 2, middle + wide / 2];
  const words = (along, across, text, { soft = false, title = null } = {}) => {
    const [x, y] = at(along, across).split(" ");
    const made = drawn("text", { x, y, class: soft ? "soft" : null }, text);
    if (title !== null) made.append(drawn("title", {}, title));
    parts.push(made);
  };
  const sideways = 140; // where words begin beside a narrow picture

  flow(4, start, centred(width(entered)), centred(width(first)), "h0");
  if (narrow) words(18, sideways, `${compact(block.run.rows_in)} rows in`);
  else {
    words(4, 18, compact(block.run.rows_in));
    words(4, 34, "rows in", { soft: true });
  }
  steps.forEach((step, number) => {
    const from = start + gap * number;
    const next = number + 1 < steps.length ? steps[number + 1].came : out;
    const cost = step.came ? step.seconds / step.came : 0;
    const colour = `h${heat(cost)}`;
    const [top, bottom] = centred(width(step.came));
    const kept = Math.min(width(step.went), bottom - top || width(step.went));
    if (step.came > step.went && bottom - top > 2) {
      const wide = Math.min(Math.max((bottom - top - kept) / 2, 1), 40);
      const deep = narrow ? 132 : 196;
      const x = from + box + 16;
      parts.push(drawn("path", { class: "fall", d: `M${at(from + box, top + kept)}` +
        `C${at(x + wide, top + kept)} ${at(x + wide, bottom)} ${at(x + wide, deep)}L${at(x, deep)}` +
        `C${at(x, bottom)} ${at(from + box + 4, bottom)} ${at(from + box, bottom)}Z` }));
    }
    flow(from, from + box, [top, bottom], [top, bottom], colour);
    const leaving = step.went > step.came ? centred(width(step.went)) : [top, top + kept];
    flow(from + box, from + gap, leaving, centred(width(next)), colour);
    const name = `${step.label}: ${step.text}`;
    const share = step.came ? step.went / step.came : 0;
    const went = step.stem ? `${threeDigits(share)} matches each` : `${percent(step.went, step.came)} pass`;
    const costs = step.came ? `${duration(cost)} a row` : "none came";
    if (narrow) {
      words(from + 10, sideways, shortened(name, 28), { title: name });
      words(from + 27, sideways, `${compact(step.came)} came, ${step.came ? went : "-"}`, { soft: true });
      words(from + 43, sideways, costs, { soft: true });
    } else {
      words(from, 18, shortened(name, Math.floor(gap / 7.6)), { title: name });
      words(from, 34, costs, { soft: true });
      words(from, 220, `${compact(step.came)} came`, { soft: true });
      words(from, 236, step.came ? went : "", { soft: true });
    }
  });
  flow(end, end + (narrow ? 24 : 60), centred(width(out)), centred(width(out)), "h0");
  if (narrow) words(end + 18, sideways, `${compact(out)} rows out`);
  else {
    words(end + 4, 18, compact(out));
    words(end + 4, 34, "rows out", { soft: true });
  }

  const said = steps.map((step) => `${step.text}: ${count(step.came)} came, ${count(step.went)} went on`);
  return picture(size, `${count(block.run.rows_in)} rows in; ${said.join("; ")}; ${count(out)} rows out`, parts);
}

function picture([wide, high], said, parts) {
  const made = drawn("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": said }, ...parts);
  made.style.maxWidth = `${wide * 1.2}px`; // so that words are not larger than all others
  return made;
}

// Shares of the rows by order over time: a column a slice, colours by how many rows an order had.
// Of a join a column is as wide as its rows are many: these come in bursts, between which SteMs are built.
export function orders(block, narrow) {
  const slices = block.run.slices;
  const ranked = block.run.orders.filter((share) => share.order.length).slice(0, COLOURS);
  const keys = ranked.map((share) => share.order.join());
  const wide = narrow ? 340 : 900;
  const high = narrow ? 120 : 150;
  // What lies between actions or batches is cut out: slices stand side by side, as wide as they took.
  const joins = block.inputs.length > 0;
  const spans = slices.map((slice) => joins ? slice.rows : Math.max(slice.end - slice.start, 1e-6));
  const whole = spans.reduce((a, b) => a + b, 0);
  const parts = [];
  let left = 0;
  slices.forEach((slice, number) => {
    const span = (wide * spans[number]) / whole;
    const total = slice.orders.reduce((sum, share) => sum + share.rows, 0);
    let top = high;
    const rows = new Map(slice.orders.map((share) => [share.order.join(), share.rows]));
    const known = keys.map((key) => rows.get(key) ?? 0);
    const rest = total - known.reduce((a, b) => a + b, 0);
    [...known, rest].forEach((taken, colour) => {
      if (!taken || !total) return;
      const part = (high * taken) / total;
      top -= part;
      parts.push(drawn("rect", { x: left.toFixed(2), y: top.toFixed(2), width: (span + 0.3).toFixed(2),
        height: part.toFixed(2), "shape-rendering": "crispEdges", class: colour < keys.length ? `c${colour}` : "rest" }));
    });
    left += span;
  });
  parts.push(drawn("path", { class: "axis", d: `M0 ${high}H${wide}` }));
  parts.push(drawn("text", { x: 0, y: high + 16, class: "soft" }, joins ? "0" : "0 s"));
  parts.push(drawn("text", { x: wide, y: high + 16, class: "soft", "text-anchor": "end" },
    joins ? `${compact(whole)} rows, as they came` : `${duration(whole)} at work`));
  const total = block.run.orders.reduce((sum, share) => sum + share.rows, 0);
  const names = ranked.map((share) => `${orderName(share.order, block.labels)} (${percent(share.rows, total)})`);
  const others = total - ranked.reduce((sum, share) => sum + share.rows, 0);
  const drawing = picture([wide, high + 20], `Shares of the rows by order over time: ${names.join(", ")}`, parts);
  const entries = names.map((name, colour) => legendEntry(`c${colour}`, name));
  if (others > 0) entries.push(legendEntry("rest", `other orders (${percent(others, total)})`));
  return element("div", {}, drawing, element("ul", { class: "legend" }, ...entries));
}

export function heatLegend() {
  return element("ul", { class: "legend" }, ...HEAT.map((step, level) => legendEntry(`h${level}`, step.name)));
}

function legendEntry(colour, text) {
  const sign = drawn("svg", { viewBox: "0 0 11 11", "aria-hidden": "true" },
    drawn("rect", { width: 11, height: 11, class: colour }));
  return element("li", {}, sign, text);
}

// Rows of each task, largest first: how even the cells of a join were.
export function skew(cells, narrow) {
  const wide = narrow ? 340 : 900;
  const high = 90;
  const most = Math.max(...cells, 1);
  const shown = cells.slice(0, 200);
  const span = wide / shown.length;
  const bars = shown.map((rows, number) => drawn("rect", { class: "bar", x: (span * number).toFixed(2),
    width: Math.max(span - 1, 0.5).toFixed(2), y: (high - (high * rows) / most).toFixed(2),
    height: ((high * rows) / most).toFixed(2) }));
  const words = `${count(cells.length)} tasks, the largest first; ${compact(most)} rows at the most`;
  const below = drawn("text", { x: 0, y: high + 15, class: "soft" }, words);
  return picture([wide, high + 18], `Rows of each task: ${words}`, [...bars, below]);
}

// When a query waited for quota, from its beginning until a moment.
export function waits(query, until, narrow) {
  const wide = narrow ? 340 : 900;
  const high = 16;
  const whole = Math.max(until - query.started, 1e-3);
  const at = (moment) => (wide * Math.min(Math.max(moment - query.started, 0), whole)) / whole;
  const parts = [drawn("rect", { class: "ground", x: 0, y: 0, width: wide, height: high })];
  let waited = 0;
  for (const [began, ended] of query.waits) {
    waited += ended - began;
    parts.push(drawn("rect", { class: "wait", x: at(began).toFixed(2), y: 0, height: high,
      width: Math.max(at(ended) - at(began), 1).toFixed(2) },
    drawn("title", {}, `${duration(began - query.started)} to ${duration(ended - query.started)}`)));
  }
  parts.push(drawn("text", { x: 0, y: high + 16, class: "soft" }, "0 s"));
  parts.push(drawn("text", { x: wide, y: high + 16, class: "soft", "text-anchor": "end" }, duration(whole)));
  return picture([wide, high + 20], `Waited for quota ${duration(waited)} of ${duration(whole)}`, parts);
}

export function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((text) => element("td", {}, text))));
  return element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": heads[0] },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}
