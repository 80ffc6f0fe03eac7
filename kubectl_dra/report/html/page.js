"use strict";
(() => {
  const list = (root, query) => Array.from(root.querySelectorAll(query));

  const filtered = (fleet, form, move) => {
    const by = {};
    for (const field of list(form, ".field")) by[field.dataset.by] = field.querySelector("input, select");
    const value = (name) => (by[name] ? by[name].value : "");
    const rows = list(fleet, ".row").map((row) => ({
      row,
      names: row.querySelector(".node").textContent.toLowerCase(),
      any: row.hasAttribute("data-any"),
      boxes: list(row, ".box"),
      cells: list(row, ".c"),
    }));
    const has = (words, word) => (words || "").split(" ").includes(word);
    const number = (count) => count.toLocaleString("en");
    const apply = () => {
      const node = value("node").trim().toLowerCase();
      const driver = value("driver"), kind = value("class"), state = value("state"), request = value("request");
      let shown = 0, all = 0, lines = 0;
      for (const { row, names, any, boxes, cells } of rows) {
        const here = !node || any || names.includes(node);
        let left = 0;
        for (const cell of cells) {
          const data = cell.dataset, count = Number(data.k || 1);
          const passes = here && (!driver || data.d === driver) && (!kind || has(data.c, kind)) &&
            (!state || data.s === state) &&
            (!request || (request === "any" ? data.m !== undefined : has(data.r, request)));
          cell.hidden = !passes;
          all += count;
          if (passes) { left += 1; shown += count; }
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
