// One instruction: its facts, the table of an operand, what the pointer is on, and what to copy.

function pane(entry, isBeside) {
  const operand = entry.operands.find((each) => each.name === state.operand) ?? entry.operands[0];
  const modifiers = modifiersOf(entry);
  const elements = elementsOf(entry, operand, modifiers);
  const told = html("output", { class: "told", "aria-live": "polite" });
  const grid = html("div", { class: "grid" }, ...tablesOf(entry, operand, elements));
  const made = html(
    "section", { class: "pane", "data-entry": entry.name, "aria-label": entry.name },
    heading(entry, isBeside), facts(entry), controls(entry, operand, modifiers),
    html("p", { class: "line" }, operand.line), told, grid, copies(entry, operand, modifiers),
    html("details", {}, html("summary", {}, "As it is written"), html("pre", {}, entry.text)),
  );
  follow(grid, told, entry, operand, elements);
  return made;
}

function heading(entry, isBeside) {
  const close = html(
    "button", { onclick: () => change({ beside: "" }), title: "Close", "aria-label": "Close" }, "×",
  );
  const compare = html(
    "button", { class: "compare", title: "Put the next choice beside it (=)",
      onclick: () => startComparison() }, "Compare",
  );
  return html(
    "header", {}, html("h2", {}, entry.name), isBeside ? close : compare,
    html("p", {}, entry.doc.replaceAll("\n", " ")),
  );
}

function facts(entry) {
  const times = entry.blocks > 1 ? `${entry.blocks} × ` : "";
  const rows = [
    ["shape", `${times}${entry.m} × ${entry.n} × ${entry.k}`],
    ["types", ["a", "b", "c"].map((name) => entry.types[name]).join(", ")],
    ["registers", entry.operands.map((each) => `${each.name} ${each.registers}`).join(", ")],
    ["call", entry.call ?? "c + a * b"],
  ];
  if (entry.aliases?.length) rows.push(["also", entry.aliases.join(", ")]);
  if (entry.features) rows.push(["features", entry.features.join(", ")]);
  if (entry.modifiers.length) rows.push(["takes", entry.modifiers.join(", ")]);
  const table = html("table", { class: "facts" });
  for (const [name, value] of rows)
    table.append(html("tr", {}, html("th", {}, name), html("td", {}, value)));
  const made = html("div", { class: "about" }, table);
  if (entry.cycles) made.append(speeds(entry));
  return made;
}

/** Cycles, and operations in a cycle of a compute unit, of each chip. */
function speeds(entry) {
  const rows = Object.entries(entry.cycles).map(([chip, cycles]) =>
    html(
      "tr", {}, html("th", {}, chip), html("td", {}, String(cycles)),
      html("td", {}, entry.operations[chip].toLocaleString("en")),
    ),
  );
  const unit = "operations / cycle, compute unit";
  const head = html("tr", {}, ...["chip", "cycles", unit].map((name) => html("th", {}, name)));
  return html("table", { class: "facts speeds" }, head, ...rows);
}

function controls(entry, operand, modifiers) {
  const made = html("div", { class: "controls" });
  const choices = (name, now, values) =>
    html(
      "span", { role: "group", "aria-label": name },
      ...values.map(([value, text]) =>
        html(
          "button", { "aria-pressed": String(value === now), "data-choice": `${name}:${value}`,
            onclick: () => change({ [name]: value, held: "" }) }, text,
        ),
      ),
    );
  made.append(
    choices("operand", operand.name, entry.operands.map((each) => [each.name, each.name])),
    choices("view", state.view, [
      ["elements", "elements"], ["lanes", entry.kind === "microkernel" ? "registers" : "lanes"],
    ]),
  );
  if (entry.kind !== "microkernel")
    made.append(choices("colour", state.colour, [["lane", "by lane"], ["register", "by register"]]));
  made.append(choices("size", state.size, [["fit", "to the window"], ["full", "full size"]]));
  const select = (name, count) => {
    const options = range(count).map((value) =>
      html("option", { value, selected: value === modifiers[name] }, `${name}=${value}`),
    );
    made.append(
      html("select", { "aria-label": name, "data-modifier": name,
        onchange: (event) => change({ [name]: Number(event.target.value), held: "" }) },
        ...options),
    );
  };
  if (entry.modifiers.includes("cbsz_abid")) {
    if (!entry.sparse) select("cbsz", Math.log2(entry.blocks) + 1);
    select("abid", entry.sparse ? indexSets(entry) : 1 << modifiers.cbsz);
  }
  if (entry.modifiers.includes("blgp")) select("blgp", 8);
  return made;
}

/** Tell of the cell under the pointer or the keys, and show all that its lane holds. */
function follow(grid, told, entry, operand, elements) {
  const cells = [...grid.querySelectorAll("td")];
  const cpu = entry.kind === "microkernel";
  const nameOf = (cell) => `${entry.name}:${operand.name}:${cells.indexOf(cell)}`;
  const show = (cell, lane) => {
    for (const each of cells) {
      each.classList.toggle("same", lane !== undefined && each.lane === lane && each.elements.length > 0);
      each.classList.toggle("here", each === cell);
    }
    told.replaceChildren();
    if (lane === undefined) return;
    if (cell?.elements.length) {
      const [first] = cell.elements;
      const names = cell.elements.map((element) => elementTold(operand, element)).join(", ");
      told.append(html("b", {}, `${names}: ${placeTold(entry, first)}`), " — ");
    }
    const held = elements.filter((element) => element.lane === lane);
    const names = held.map((element) => elementTold(operand, element)).join(", ");
    told.append(`${cpu ? "register" : "lane"} ${lane} holds ${names || "nothing that is read"}`);
  };
  const held = cells.find((cell) => nameOf(cell) === state.held);
  const settle = () => (held ? show(held, held.lane) : show(undefined, undefined));
  grid.addEventListener("pointerover", ({ target }) => {
    const row = target.closest("th[scope=row]");
    if (target.matches("td")) show(target, target.lane);
    else if (row && state.view === "lanes") show(undefined, Number(row.dataset.row));
  });
  grid.addEventListener("pointerleave", settle);
  grid.addEventListener("focusin", ({ target }) => target.matches("td") && show(target, target.lane));
  const hold = (cell) => change({ held: state.held === nameOf(cell) ? "" : nameOf(cell) });
  grid.addEventListener("click", ({ target }) => target.matches("td") && hold(target));
  grid.addEventListener("keydown", (event) => walk(event, hold));
  (held ?? cells[0]).tabIndex = 0;
  settle();
}

/** From cell to cell by arrows. */
function walk(event, hold) {
  const cell = event.target;
  if (!cell.matches("td")) return;
  const line = cell.parentElement;
  const column = cell.cellIndex;
  const next = {
    ArrowLeft: cell.previousElementSibling, ArrowRight: cell.nextElementSibling,
    ArrowUp: line.previousElementSibling?.cells[column],
    ArrowDown: line.nextElementSibling?.cells[column],
  }[event.key];
  if (event.key === "Enter") hold(cell);
  else if (!event.key.startsWith("Arrow")) return;
  event.preventDefault();
  event.stopPropagation();
  if (next?.matches("td")) {
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

function copies(entry, operand, modifiers) {
  const made = html("div", { class: "copies" }, "Copy ");
  const button = (name, text) =>
    html("button", { "data-copy": name, onclick: (event) => copy(event.target, text()) }, name);
  made.append(
    button("json", () => JSON.stringify(layoutJson(entry, operand, modifiers), null, 2) + "\n"),
    button("mfma", () => entry.text),
  );
  if (entry.exports) made.append(button("csv", () => layoutsCsv(entry)));
  for (const [name, { text, refused }] of Object.entries(entry.exports ?? {})) {
    const each = button(name, () => text);
    if (refused) Object.assign(each, { disabled: true, title: refused });
    made.append(each);
  }
  return made;
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page of a file may have no clipboard of its own: the old way then.
    const area = html("textarea", {}, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const name = button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = name), 900);
}
