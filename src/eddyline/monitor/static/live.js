// The page: a list of queries, and all of one of them, as the server tells.

import { compact, count, duration, element, heatLegend, orderName, orderNow, orders, percent, river,
  skew, table, waits } from "./charts.js";

const PAGE = 50; // queries that are asked for at a time

const at = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 760px)");
const state = {
  queries: new Map(), // summaries by number
  chosen: null, // a number; null follows the latest
  shown: null, // the query that is shown, in full
  more: true, // whether there are earlier ones
  find: "",
  skew: 0, // seconds by which the server's clock is ahead
  seen: new Map(), // what was said of queries that ran, to tell when they have ended
};

function now() {
  return Date.now() / 1000 + state.skew;
}

async function asked(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

async function askForQueries(before) {
  const wanted = new URLSearchParams({ most: PAGE, find: state.find });
  if (before !== undefined) wanted.set("before", before);
  const find = state.find;
  const found = await asked(`queries?${wanted}`);
  if (find !== state.find) return; // another search has begun
  if (before === undefined && find) state.queries.clear();
  for (const query of found.queries) state.queries.set(query.number, query);
  if (before !== undefined || !state.began) state.more = found.queries.length === PAGE;
  state.began = true;
  at("count").textContent = `${count(found.count)} ${found.count === 1 ? "query" : "queries"}`;
  showList();
}

function matches(query) {
  return nameOf(query).toLowerCase().includes(state.find.toLowerCase());
}

function nameOf(query) {
  return query.about ? `${query.description}: ${query.about}` : query.description;
}

function showList() {
  const list = at("queries");
  const numbers = [...state.queries.keys()].sort((a, b) => b - a);
  const wanted = numbers.filter((number) => matches(state.queries.get(number)));
  const chosen = chosenNumber();
  const known = new Map([...list.children].map((item) => [Number(item.dataset.number), item]));
  let place = list.firstChild;
  for (const number of wanted) {
    let item = known.get(number);
    if (item === undefined) {
      item = element("li", {}, element("button", { type: "button" }, element("b"), element("span")));
      item.dataset.number = number;
      item.firstChild.addEventListener("click", () => choose(number));
    }
    known.delete(number);
    describe(item.firstChild, state.queries.get(number), number === chosen);
    if (item !== place) list.insertBefore(item, place);
    else place = place.nextSibling;
  }
  for (const item of known.values()) item.remove();
  at("more").hidden = !state.more;
  at("empty")?.toggleAttribute("hidden", numbers.length > 0);
}

function describe(button, query, chosen) {
  const [name, rest] = button.children;
  const seconds = (query.ended ?? now()) - query.started;
  const done = query.tasks ? `${query.tasks_done}/${query.tasks} tasks, ` : "";
  setText(name, nameOf(query));
  setText(rest, `${query.state === "done" ? "" : `${query.state}, `}${query.state === "running" ? done : ""}` +
    `${compact(query.rows_in)} rows, ${duration(Math.max(seconds, 0))}`);
  rest.className = query.state;
  button.title = nameOf(query);
  button.setAttribute("aria-current", chosen);
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function chosenNumber() {
  if (state.chosen !== null) return state.chosen;
  const numbers = [...state.queries.keys()];
  return numbers.length ? Math.max(...numbers) : null;
}

function choose(number) {
  state.chosen = number;
  history.replaceState(null, "", `#${number}`);
  showList();
  showQuery();
}

let asking = false;
let again = false;

async function showQuery() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    do {
      again = false;
      const number = chosenNumber();
      if (number === null) continue;
      let query = null;
      try {
        query = await asked(`query/${number}`);
      } catch (error) {
        if (error.message !== "404") throw error;
      }
      if (number === chosenNumber()) draw(query, number);
    } while (again);
  } catch {
    // The connection is lost, which is said elsewhere; what is shown stays.
  } finally {
    asking = false;
  }
}

function draw(query, number) {
  const main = at("query");
  // What a reader has opened or scrolled to stays: only what a query says is drawn anew.
  const held = main.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  if (query === null) {
    main.replaceChildren(element("p", { class: "empty" }, `Query ${number} is not known any more.`));
    return;
  }
  state.shown = query;
  state.queries.set(query.number, query);
  const parts = [element("h2", {}, nameOf(query)), headline(query), tiles(query)];
  if (query.tasks && query.state === "running") {
    parts.push(element("progress", { value: query.tasks_done, max: query.tasks, "aria-label": "Tasks done" }));
  }
  if (query.waiting) parts.push(element("p", { class: "empty" }, query.waiting));
  if (query.waits.length) {
    parts.push(element("h4", {}, "Waits for quota"), waits(query, query.ended ?? now(), narrow.matches));
  }
  if (query.error) parts.push(element("pre", { tabindex: 0 }, query.error));
  if (!query.blocks.length && query.ended !== null) {
    parts.push(element("p", { class: "empty" }, "This query has ended so long ago that only its sums are kept."));
  }
  query.blocks.forEach((block, place) => parts.push(...drawBlock(block, place, query.blocks.length)));
  main.replaceChildren(...parts);
  const error = main.querySelector("pre");
  if (error !== null) error.scrollTop = error.scrollHeight; // a traceback tells most at its end
  if (held !== null) {
    for (const each of main.querySelectorAll("[aria-label]")) {
      if (each.getAttribute("aria-label") === held) each.focus({ preventScroll: true });
    }
  }
}

function headline(query) {
  const started = new Date(query.started * 1000).toLocaleString();
  const line = element("p", { class: "sub" }, `Query ${query.number}, `);
  line.append(element("span", { class: query.state }, query.state), `, began ${started}`);
  return line;
}

function tiles(query) {
  const seconds = Math.max((query.ended ?? now()) - query.started, 0);
  const spared = Math.max(query.calls_possible - query.calls, 0);
  const shown = [
    ["Rows in", compact(query.rows_in), seconds > 0 ? `${compact(query.rows_in / seconds)} a second` : ""],
    ["Rows out", compact(query.rows_out), percent(query.rows_out, query.rows_in)],
    ["Elapsed", duration(seconds), ""],
    ["Tasks done", `${count(query.tasks_done)}`, `of ${count(query.tasks)} with an eddy`],
    ["Calls", compact(query.calls), `of ${compact(query.calls_possible)} in plain Spark`],
    ["Calls spared", percent(spared, query.calls_possible), `about ${duration(query.spared)} of work`],
  ];
  if (query.errors) shown.push(["Errors held", compact(query.errors), "a row fails only if it counts"]);
  return element("dl", { class: "tiles" }, ...shown.map(([name, value, note]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value, element("small", {}, note)))));
}

function drawBlock(block, place, blocks) {
  const title = blocks > 1 ? `Block ${place + 1}: ${block.title}` : block.title;
  const parts = [element("h3", {}, title)];
  const run = block.run;
  if (run === null) return [...parts, element("p", { class: "sub" }, "No rows have come yet.")];
  const order = orderName(orderNow(block), block.labels);
  const how = `policy ${block.policy}${block.layout ? `, ${block.layout}` : ""}`;
  parts.push(element("p", { class: "sub" }, block.steps.length ? `order now ${order}; ${how}` : how));
  if (block.steps.length) parts.push(river(block, narrow.matches), heatLegend());
  if (run.slices.length && block.steps.length > 1) {
    parts.push(element("h4", {}, "Orders over time"), orders(block, narrow.matches));
  }
  if (block.steps.length) {
    parts.push(element("h4", {}, "Steps"), table(["step", "came", "went on", "share", "a row", "time", "errors"],
      block.steps.map((step) => [`${step.label}: ${step.text}`, compact(step.came), compact(step.went),
        percent(step.went, step.came), step.came ? duration(step.seconds / step.came) : "-",
        duration(step.seconds), step.errors ? compact(step.errors) : "-"])));
  }
  if (run.functions.length) {
    parts.push(element("h4", {}, "Functions"), table(["function", "called", "spared", "remembered", "time"],
      run.functions.map((each) => [each.name, compact(each.calls), percent(each.avoided, each.calls_possible),
        compact(each.remembered), duration(each.seconds)])));
  }
  if (run.join !== null) parts.push(...drawJoin(run.join));
  return parts;
}

function drawJoin(join) {
  const parts = [element("h4", {}, "State Modules"), table(
    ["SteM", "rows read", "came", "built", "probes", "matches", "bounced"],
    join.stems.map((stem) => [stem.relation, ...["read", "came", "builds", "probes", "matches", "bounced"]
      .map((what) => compact(stem[what]))]))];
  if (join.cells.length > 2) parts.push(element("h4", {}, "Skew"), skew(join.cells, narrow.matches));
  if (join.spilled_bytes) {
    parts.push(element("p", { class: "sub" },
      `${compact(join.spilled_bytes)} bytes were written to disk, in ${count(join.spilled_files)} files.`));
  }
  return parts;
}

function listen() {
  const events = new EventSource("events");
  const connection = at("connection");
  let lost = true;
  events.addEventListener("open", () => {
    connection.className = "";
    connection.textContent = "live";
    if (lost) refresh(); // what has happened meanwhile
    lost = false;
  });
  events.addEventListener("error", () => {
    lost = true;
    connection.className = "lost";
    connection.textContent = "connection lost, trying again";
    if (events.readyState === EventSource.CLOSED) { // refused: the browser gives up, we do not
      events.close();
      setTimeout(listen, 2000);
    }
  });
  events.addEventListener("message", (event) => take(JSON.parse(event.data)));
}

function refresh() {
  askForQueries().then(showQuery, () => undefined);
}

function take(news) {
  state.skew = news.now - Date.now() / 1000;
  const running = new Map(news.running.map((query) => [query.number, query]));
  const before = chosenNumber();
  const ended = [...state.seen.keys()].filter((number) => !running.has(number));
  const began = [...running.keys()].filter((number) => !state.seen.has(number));
  for (const query of running.values()) state.queries.set(query.number, query);
  state.seen = running;
  if (ended.length || began.length || news.count > state.counted) refresh();
  else showList();
  state.counted = news.count;
  if (ended.length) {
    at("told").textContent = ended.length === 1 ? `Query ${ended[0]} has ended` : `${ended.length} queries have ended`;
  }
  const chosen = chosenNumber();
  if (chosen !== null && (running.has(chosen) || ended.includes(chosen) || chosen !== before)) showQuery();
}

function begin() {
  const wanted = Number(location.hash.slice(1));
  if (Number.isSafeInteger(wanted) && wanted > 0) state.chosen = wanted;
  at("more").addEventListener("click", () => {
    const numbers = [...state.queries.values()].filter(matches).map((query) => query.number);
    askForQueries(Math.min(...numbers)).catch(() => undefined);
  });
  let typing = 0;
  at("find").addEventListener("input", () => {
    state.find = at("find").value;
    clearTimeout(typing);
    state.began = false;
    typing = setTimeout(() => askForQueries().catch(() => undefined), 200);
    showList();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && document.activeElement !== at("find")) {
      event.preventDefault();
      at("find").focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const buttons = [...at("queries").querySelectorAll("button")];
      const place = buttons.indexOf(document.activeElement);
      if (place < 0 && document.activeElement !== at("find")) return;
      const next = buttons[place + (event.key === "ArrowDown" ? 1 : -1)];
      if (next !== undefined) {
        event.preventDefault();
        next.focus();
      }
    } else if (event.key === "Escape" && document.activeElement === at("find")) {
      at("find").value = "";
      at("find").dispatchEvent(new Event("input"));
    }
  });
  narrow.addEventListener("change", () => state.shown && draw(state.shown, state.shown.number));
  listen();
}

begin();
