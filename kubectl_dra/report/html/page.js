"use strict";
(() => {
  const list = (root, query) => Array.from(root.querySelectorAll(query));

  // So many rows of single nodes are drawn at once.
  const MOST = 60;
  const number = (count) => count.toLocaleString("en");
  const devices = (count) => number(count) + (count === 1 ? " device" : " devices");
  const lower = (text) => text.toLowerCase();
  const has = (words, word) => (words || "").split(" ").includes(word);
  const made = (name, of, text = "") => {
    const element = document.createElement(name);
    if (of) element.className = of;
    element.textContent = text;
    return element;
  };

  // Where each device of the rows of nodes alike is, and who holds it: see members.py.
  const unpacked = async (text) => {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };

  // One device of a folded row: its name, its holders, and all that is said of it.
  const named = (line, title, [at, name, , pool]) => `${line.cells[at].driver}/${pool === undefined ? title : pool}/${name}`;
  const holders = ([, , held], data) =>
    held === undefined || held === -1 ? "" : [].concat(held).map((each) => data.claims[each]).join(", ");
  const facts = (line, title, device, data) => {
    const out = [["Device", named(line, title, device)], ...line.cells[device[0]].said], by = holders(device, data);
    if (by) out.splice(out.findIndex(([word]) => word === "State") + 1, 0, ["Held by", by]);
    return out;
  };
  // What is searched of it: not what it means to requests, which have a filter of their own.
  const told = (pairs) => pairs.map(([word, text]) => (word === "Claims" ? "" : text)).join(" ");
  const single = (line, title, device, data, folded) => {
    const source = folded[device[0]], cell = made("div", "c");
    for (const key of ["s", "d", "c", "m", "r"]) if (source.dataset[key] !== undefined) cell.dataset[key] = source.dataset[key];
    cell.setAttribute("role", "gridcell");
    cell.tabIndex = -1;
    cell.append(made("span", "name", device[1]));
    const used = source.querySelector(".used");
    if (used) cell.append(used.cloneNode(true));
    const panel = made("span", "facts");
    for (const [word, text] of facts(line, title, device, data)) {
      if (panel.firstChild) panel.append(made("br"));
      panel.append(made("b", "", word), " ", made("span", "", text));
    }
    cell.append(panel);
    return cell;
  };
  const tally = (states) => Array.from(states, ([state, count]) => number(count) + " " + state).join(", ");
  const counted = (found, folded) => {
    const states = new Map();
    for (const [at] of found) states.set(folded[at].dataset.s, (states.get(folded[at].dataset.s) || 0) + 1);
    return devices(found.length) + ": " + tally(states);
  };
  const member = (line, title, found, data, folded) => {
    const row = made("div", "row member"), head = made("div", "node"), cells = made("div", "devices");
    row.setAttribute("role", "row");
    head.setAttribute("role", "rowheader");
    cells.setAttribute("role", "none");
    head.append(made("b", "", title), " ", made("small", "", counted(found, folded)));
    cells.append(...found.map((device) => single(line, title, device, data, folded)));
    row.append(head, cells);
    return row;
  };

  const filtered = (fleet, form, move) => {
    const by = {};
    for (const field of list(form, ".field")) by[field.dataset.by] = field.querySelector("input, select");
    const value = (name) => (by[name] ? by[name].value : "");
    const first = Number(fleet.dataset.first), more = made("button", "more");
    let unfolded = false;
    const rows = list(fleet, ".row").map((row) => {
      const title = row.querySelector(".node b"), states = row.querySelector(".node small");
      const names = row.querySelector(".node .names"), kinds = row.querySelector(".node .kinds");
      return {
        row, title, states, names,
        whole: title.textContent,
        all: states.textContent,
        text: lower([title, names, kinds].map((each) => (each ? each.textContent : "")).join(" ")),
        // Its list of names is cut short, so that none can be ruled out.
        any: row.hasAttribute("data-any"),
        boxes: list(row, ".box"),
        cells: list(row, ".c").map((cell) => {
          const name = cell.querySelector(".name");
          return { cell, name, label: name.textContent, count: Number(cell.dataset.k || 1), text: "" };
        }),
        line: null, open: false, button: null,
      };
    });
    // The nodes of a folded row, each with the devices that are asked for.
    const asked = ({ line, text }, words, passes, data) => {
      const one = line.parts.length === 1 ? text : "", found = [];
      const common = line.cells.map(({ said }) => lower(told(said)));
      for (const part of line.parts) {
        if (!part.texts) {
          part.texts = part.devices.map((device) =>
            lower(`${part.title} ${named(line, part.title, device)} ${holders(device, data)}`));
        }
        const kept = part.devices.filter((device, at) =>
          passes[device[0]] && words.every((word) =>
            part.texts[at].includes(word) || common[device[0]].includes(word) || one.includes(word)));
        if (kept.length) found.push([part, kept]);
      }
      return found;
    };
    // Says of a folded row what holds for the devices that are asked for.
    const narrow = ({ title, states, whole, all, cells, line }, found) => {
      const parts = found.length, kept = found.flatMap(([, each]) => each);
      const complete = found.every(([part, each]) => each.length === part.devices.length);
      title.textContent = !line || parts === line.parts.length ? whole : parts === 1 ? found[0][0].title : `${number(parts)} of ${whole}`;
      states.textContent = counted(kept, cells.map(({ cell }) => cell));
      const counts = cells.map((each, at) => kept.filter((device) => device[0] === at).length);
      cells.forEach(({ cell, name, label, count }, at) => {
        cell.hidden = !counts[at];
        const kind = label.replace(/^[0-9,]+ \u00d7 /, "");
        name.textContent = complete ? label : `${number(counts[at])} of ${number(count)} \u00d7 ${kind}`;
      });
    };
    let data = null;
    const apply = () => {
      const words = lower(value("find")).split(/\s+/).filter(Boolean);
      const driver = value("driver"), kind = value("class"), state = value("state"), request = value("request");
      const plain = !words.length && !driver && !kind && !state && !request;
      const fits = ({ dataset }) => (!driver || dataset.d === driver) && (!kind || has(dataset.c, kind)) &&
        (!state || dataset.s === state) && (!request || (request === "any" ? dataset.m !== undefined : has(dataset.r, request)));
      for (const old of list(fleet, ".member")) old.remove();
      let shown = 0, all = 0, lines = 0, room = MOST;
      for (const each of rows) {
        const { row, text, any, boxes, cells, line, open } = each;
        const passes = cells.map(({ cell }) => fits(cell));
        each.title.textContent = each.whole;
        each.states.textContent = each.all;
        let left = 0, here = 0;
        cells.forEach((one, at) => {
          const { cell, name, label, count } = one;
          all += count;
          name.textContent = label;
          let passed = passes[at];
          if (passed && words.length && !line && !any) {
            if (!one.text) {
              const pairs = list(cell, ".facts b").map((word) => [word.textContent, word.nextElementSibling.textContent]);
              one.text = lower(told(pairs));
            }
            passed = words.every((word) => text.includes(word) || one.text.includes(word));
          }
          cell.hidden = !passed;
          if (passed) { left += 1; here += count; }
        });
        let split = 0;
        if (line && left && (words.length || open)) {
          const found = asked(each, words, passes, data), kept = found.reduce((sum, [, some]) => sum + some.length, 0);
          const part = kept < here;
          here = kept;
          if (!kept) left = 0;
          else if (open || (part && found.length <= room)) {
            const drawn = found.slice(0, open ? MOST : room);
            if (!open) { left = 0; room -= drawn.length; }
            split = drawn.length;
            const folded = cells.map(({ cell }) => cell);
            row.after(...drawn.map(([at, some]) => member(line, at.title, some, data, folded)));
            if (drawn.length < found.length) {
              const rest = made("div", "member quiet", `and ${number(found.length - drawn.length)} more; Find narrows them down`);
              row.parentNode.insertBefore(rest, list(fleet, ".member").filter((one) => row.compareDocumentPosition(one) & 4)[split - 1].nextSibling);
            }
          }
          if (left && part) narrow(each, found);
        }
        if (each.button) {
          each.button.textContent = open ? "Fold" : line.parts.length > 1 ? "Show each node" : "Show each device";
          each.button.setAttribute("aria-expanded", String(open));
        }
        for (const box of boxes) box.hidden = !box.querySelector(".c:not([hidden])");
        row.hidden = !left;
        shown += left || split ? here : 0;
        lines += (left ? 1 : 0) + split;
        row.classList.toggle("far", plain && !unfolded && rows.indexOf(each) >= first);
      }
      const far = list(fleet, ".row.far").length;
      more.hidden = !far;
      more.textContent = `Show ${number(far)} more rows`;
      const some = shown === all ? number(all) : number(shown) + " of " + number(all);
      form.querySelector("output").textContent = far
        ? `${some} devices in ${number(lines)} rows, of which the first ${number(lines - far)} are shown`
        : some + " devices shown, in " + number(lines) + (lines === 1 ? " row" : " rows");
      fleet.querySelector(".none").hidden = shown > 0;
      move();
    };
    const toggle = (each) => {
      each.open = !each.open;
      apply();
    };
    const folds = (found) => {
      data = found;
      for (const [at, line] of Object.entries(data.lines)) {
        const each = rows[at];
        each.line = { cells: line.cells, parts: line.parts.map(([title, ...kept]) => ({ title, devices: kept, texts: null })) };
        each.button = made("button", "each");
        each.button.type = "button";
        // The arrow keys reach the row's devices, and Enter does the same there.
        each.button.tabIndex = -1;
        each.button.addEventListener("click", () => toggle(each));
        each.row.querySelector(".node").append(each.button);
        each.row.addEventListener("keydown", (event) => {
          if (event.key === "Enter" && event.target.matches(".c")) toggle(each);
        });
      }
      fleet.dataset.ready = "";
      apply();
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector("[type=reset]").addEventListener("click", (event) => {
      event.preventDefault();
      form.reset();
      for (const each of rows) each.open = false;
      apply();
    });
    more.type = "button";
    more.addEventListener("click", () => {
      const next = rows[first].row.querySelector(".c");
      unfolded = true;
      apply();
      if (next) next.focus();
    });
    fleet.querySelector(".grid").after(more);
    form.hidden = false;
    apply();
    // A browser that cannot unpack them still has the folded rows.
    if (fleet.dataset.members) unpacked(fleet.dataset.members).then(folds, () => {});
  };

  const walked = (fleet) => {
    const grid = fleet.querySelector(".grid");
    const rows = () => list(grid, ".row:not([hidden]):not(.far)").map((row) => list(row, ".c:not([hidden])")).filter((cells) => cells.length);
    for (const cell of list(grid, ".c")) cell.tabIndex = -1;
    let current = null;
    const stop = (cell) => {
      if (current) current.tabIndex = -1;
      current = cell;
      if (cell) cell.tabIndex = 0;
    };
    const go = (cell) => {
      if (!cell) return;
      stop(cell);
      fleet.classList.remove("hush");
      cell.focus();
      cell.scrollIntoView({ block: "nearest" });
    };
    grid.addEventListener("focusin", (event) => {
      const cell = event.target.closest(".c");
      if (cell && cell !== current) stop(cell);
    });
    grid.addEventListener("pointerover", () => fleet.classList.remove("hush"));
    grid.addEventListener("keydown", (event) => {
      if (!event.target.matches(".c") || event.altKey || event.metaKey) return;
      const lines = rows();
      const y = lines.findIndex((cells) => cells.includes(event.target));
      if (y < 0) return;
      const x = lines[y].indexOf(event.target);
      const at = (line, column) => {
        const cells = lines[Math.max(0, Math.min(lines.length - 1, line))];
        return cells[Math.max(0, Math.min(cells.length - 1, column))];
      };
      const moves = {
        ArrowLeft: () => at(y, x - 1),
        ArrowRight: () => at(y, x + 1),
        ArrowUp: () => at(y - 1, x),
        ArrowDown: () => at(y + 1, x),
        PageUp: () => at(y - 10, x),
        PageDown: () => at(y + 10, x),
        Home: () => at(event.ctrlKey ? 0 : y, 0),
        End: () => at(event.ctrlKey ? lines.length - 1 : y, Infinity),
      };
      if (moves[event.key]) {
        event.preventDefault();
        go(moves[event.key]());
      }
    });
    return () => {
      if (current && current.isConnected && !current.closest("[hidden], .far")) return;
      const first = rows()[0];
      stop(first ? first[0] : null);
    };
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const fleet of list(document, ".fleet")) fleet.classList.add("hush");
  });
  // Paper has nothing to open; long lists of names stay folded there.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = list(document, "details:not([open])").filter((each) => !each.closest(".node"));
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
  for (const fleet of list(document, ".fleet")) filtered(fleet, fleet.querySelector(".filters"), walked(fleet));
})();
