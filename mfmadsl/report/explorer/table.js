// The cells of an operand: as the matrix, or as what each lane holds.

/** An HTML element with attributes and children. */
function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined)
      made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** The colour of one of several, as the pictures of `mfmadsl show` have it. */
function colourOf(shade, shades) {
  return `--hue:${(306 * shade) / Math.max(shades, 1)};--odd:${shade % 2}`;
}

/** Tables of all blocks; each cell knows its place and its elements. */
function tablesOf(entry, operand, elements) {
  return state.view === "elements"
    ? matrices(entry, operand, elements)
    : [registersTable(entry, operand, elements)];
}

function matrices(entry, operand, elements) {
  const [rows, columns] = operand.shape;
  const shades = shadesOf(entry, operand, elements);
  return range(operand.blocks).map((block) =>
    table(
      operand.blocks > 1 ? `block ${block}` : "", operand.axes.join(", "), range(rows),
      range(columns),
      (row, column) => {
        const element = elements[(block * rows + row) * columns + column];
        return { label: placeLabel(entry, operand, element), elements: [element], ...shades(element) };
      },
    ),
  );
}

function registersTable(entry, operand, elements) {
  const cpu = entry.kind === "microkernel";
  const key = (place) => (cpu ? place.slot : place.register * 64 + place.low);
  const names = new Map(elements.map((e) => [key(e), e]));
  const places = [...names.keys()].sort((a, b) => a - b);
  const held = new Map();
  for (const element of elements) {
    const at = `${element.lane} ${key(element)}`;
    if (!held.has(at)) held.set(at, []);
    held.get(at).push(element);
  }
  const shades = shadesOf(entry, operand, elements);
  return table(
    "", cpu ? "register, element" : "lane, register", range(operand.lanes),
    places.map((each) => (cpu ? each : registerLabel(operand, names.get(each)))),
    (lane, number) => {
      const found = held.get(`${lane} ${places[number]}`) ?? [];
      if (!found.length) return { label: "", elements: [], lane };
      return { label: heldLabel(operand, found), elements: found, ...shades(found[0]) };
    },
  );
}

/** What a place holds, in short. */
function heldLabel(operand, elements) {
  const [first] = elements;
  const last = elements.at(-1);
  const block = operand.blocks > 1 ? `${first.block}:` : "";
  const row = `${block}${first.row},${first.column}`;
  if (elements.length === 1) return row;
  const neighbours =
    last.block === first.block && last.row === first.row &&
    last.column === first.column + elements.length - 1;
  return neighbours ? `${row}-${last.column}` : `${row} +${elements.length - 1}`;
}

/** The colour and the lane of a place. */
function shadesOf(entry, operand, elements) {
  const key = (place) => place.register * 64 + place.low;
  const cpu = entry.kind === "microkernel";
  const byLane = state.colour === "lane" || cpu;
  const places = [...new Set(elements.map(key))].sort((a, b) => a - b);
  const numbers = new Map(places.map((each, number) => [each, number]));
  return (place) => ({
    lane: place.lane,
    style: byLane
      ? colourOf(place.lane, operand.lanes)
      : colourOf(numbers.get(key(place)), places.length),
  });
}

function range(count) {
  return Array.from({ length: count }, (_, number) => number);
}

const READABLE = 0.7; // of the size of letters, below which cells have none
const ROOM = 60; // pixels beside the cells: names of rows, and a border

/** Tables as wide as the window: with smaller letters, or as an overview of colours alone. */
function fit(grid) {
  const scale = grid.clientWidth / grid.scrollWidth;
  if (state.size !== "fit" || scale >= 1) return;
  if (scale >= READABLE) {
    grid.classList.add("smaller");
    grid.style.setProperty("--letters", `${(10.5 * scale * 0.97).toFixed(2)}px`);
    return;
  }
  const columns = Math.max(...[...grid.querySelectorAll("thead tr")].map((row) => row.cells.length));
  const cell = Math.max(3, Math.floor((grid.clientWidth - ROOM) / columns) - 1);
  grid.classList.add("overview");
  grid.style.setProperty("--cell", `${cell}px`);
}

function table(title, corner, rows, columns, cell) {
  const head = html("tr", {}, html("th", { class: "corner" }, corner));
  for (const name of columns) head.append(html("th", { scope: "col" }, String(name)));
  const body = html("tbody");
  rows.forEach((name, row) => {
    const line = html("tr", {}, html("th", { scope: "row", "data-row": row }, String(name)));
    columns.forEach((_, column) => {
      const { label, elements, lane, style } = cell(row, column);
      const drawn = html("td", { style, class: elements.length ? false : "empty", tabindex: -1 }, label);
      drawn.elements = elements;
      drawn.lane = lane;
      line.append(drawn);
    });
    body.append(line);
  });
  const made = html("table", { role: "grid" }, html("thead", {}, head), body);
  return html("figure", {}, ...(title ? [html("figcaption", {}, title)] : []), made);
}
