"use strict";
(() => {
  const list = (root, query) => Array.from(root.querySelectorAll(query));

  const filtered = (fleet, form, move) => {
    const by = {};
    for (const field of list(form, ".field")) by[field.dataset.by] = field.querySelector("input, select");
    const value = (name) => (by[name] ? by[name].value : "");
    const rows = list(fleet, ".row").map((row) => {
      const title = row.querySelector(".node b"), states = row.querySelector(".node small");
      const names = row.querySelector(".node .names");
      return {
        row,
        names: row.querySelector(".node").textContent.toLowerCase(),
        any: row.hasAttribute("data-any"),
        boxes: list(row, ".box"),
        cells: list(row, ".c"),
        // Of nodes that are alike: how many they are, their names, and what is said of all of them.
        alike: Number(row.dataset.n || 1),
        nodes: row.dataset.n && names ? names.firstChild.textContent.split(", ") : [],
        title, states, whole: title.textContent, all: states.textContent,
      };
    });
    const has = (words, word) => (words || "").split(" ").includes(word);
    const number = (count) => count.toLocaleString("en");
    const devices = (count) => number(count) + (count === 1 ? " device" : " devices");
    // Says of a row of nodes that are alike what holds for those that were asked for; gives how many they are.
    const narrowed = ({ cells, alike, nodes, title, states, whole, all }, node) => {
      const found = node ? nodes.filter((name) => name.toLowerCase().includes(node)) : [];
      const part = found.length && found.length < alike ? found.length : alike;
      title.textContent = part === alike ? whole : part === 1 ? found[0] : number(part) + " of " + whole;
      states.textContent = all;
      if (part < alike) {
        const sums = new Map();
        let sum = 0;
        for (const { dataset } of cells) {
          const count = Number(dataset.k || 1) * part / alike;
          sums.set(dataset.s, (sums.get(dataset.s) || 0) + count);
          sum += count;
        }
        const each = Array.from(sums, ([state, count]) => number(count) + " " + state);
        states.textContent = devices(sum) + ": " + each.join(", ");
      }
      return part;
    };
    const apply = () => {
      const node = value("node").trim().toLowerCase();
      const driver = value("driver"), kind = value("class"), state = value("state"), request = value("request");
      let shown = 0, all = 0, lines = 0;
      for (const each of rows) {
        const { row, names, any, boxes, cells } = each;
        const here = !node || any || names.includes(node);
        const part = narrowed(each, node);
        let left = 0;
        for (const cell of cells) {
          const data = cell.dataset, count = Number(data.k || 1);
          const passes = here && (!driver || data.d === driver) && (!kind || has(data.c, kind)) &&
            (!state || data.s === state) &&
            (!request || (request === "any" ? data.m !== undefined : has(data.r, request)));
          cell.hidden = !passes;
          all += count;
          if (passes) { left += 1; shown += count * part / each.alike; }
        }
        for (const box of boxes) box.hidden = !box.querySelector(".c:not([hidden])");
        row.hidden = !left;
        if (left) lines += 1;
      }
      const some = shown === all ? number(all) : number(shown) + " of " + number(all);
      form.querySelector("output").textContent = some + " devices shown, in " + number(lines) + (lines === 1 ? " row" : " rows");
      fleet.querySelector(".none").hidden = shown > 0;
      move();
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector("[type=reset]").addEventListener("click", (event) => {
      event.preventDefault();
      form.reset();
      apply();
    });
    form.hidden = false;
    apply();
  };

  const walked = (fleet) => {
    const grid = fleet.querySelector(".grid");
    const rows = () => list(grid, ".row:not([hidden])").map((row) => list(row, ".c:not([hidden])"));
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
      if (current && current.isConnected && !current.closest("[hidden]")) return;
      const first = rows()[0];
      stop(first ? first[0] : null);
    };
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const fleet of list(document, ".fleet")) fleet.classList.add("hush");
  });
  for (const fleet of list(document, ".fleet")) filtered(fleet, fleet.querySelector(".filters"), walked(fleet));
})();
