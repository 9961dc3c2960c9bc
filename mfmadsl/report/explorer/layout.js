// Where elements lie: the layouts of the library, computed from the bits of an element's number.

/** The number of an element's slot, lane * slots + slot, by its number among all. */
function slotOf(operand, number) {
  if (operand.places) return operand.places[number];
  let slot = 0;
  for (let bit = 0; number; bit++, number >>= 1) if (number & 1) slot ^= operand.bases[bit];
  return slot;
}

/** Lane, slot, register and bits from which an element is read under modifiers. */
function placeOf(entry, operand, block, row, column, modifiers) {
  const sparse = operand.sparse;
  if (operand.name === "a" && !sparse && modifiers.cbsz)
    block = ((block >> modifiers.cbsz) << modifiers.cbsz) | modifiers.abid;
  const stored = sparse ? Math.floor(column / 4) * 2 : column;
  const number = (block * operand.shape[0] + row) * operand.stored + stored;
  const place = slotOf(operand, number);
  let lane = Math.floor(place / operand.slots);
  const slot = place % operand.slots;
  if (operand.name === "b" && modifiers.blgp)
    lane = DATA.laneSources[operand.lanes][modifiers.blgp][lane];
  if (entry.kind === "microkernel") return { lane, slot, register: lane, low: 0, high: 0 };
  let first = slot * operand.bits;
  if (operand.name === "index" && !modifiers.cbsz)
    first += modifiers.abid * operand.slots * operand.bits;
  const register = Math.floor(first / 32);
  const low = first % 32;
  return { lane, slot, register, low, high: low + (sparse ? 2 : 1) * operand.bits - 1 };
}

/** Every element of an operand, in the order block, row, column, with its place. */
function elementsOf(entry, operand, modifiers) {
  const [rows, columns] = operand.shape;
  const found = [];
  for (let block = 0; block < operand.blocks; block++)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        found.push({
          block, row, column, ...placeOf(entry, operand, block, row, column, modifiers),
        });
  return found;
}

/** A place in short: lane:register[bits], or register:element on a CPU. */
function placeLabel(entry, operand, place) {
  if (entry.kind === "microkernel") return `${place.lane}:${place.slot}`;
  return `${place.lane}:${registerLabel(operand, place)}`;
}

function registerLabel(operand, place) {
  const packed = operand.sparse || operand.bits < 32;
  return place.register + (packed ? `[${place.low}:${place.high}]` : "");
}

/** A place in words. */
function placeTold(entry, place) {
  if (entry.kind === "microkernel") return `register ${place.lane}, element ${place.slot}`;
  const last = place.register + Math.floor(place.high / 32);
  const registers =
    last > place.register ? `registers ${place.register} and ${last}` : `register ${place.register}`;
  return `lane ${place.lane}, ${registers}, bits ${place.low} to ${place.high}`;
}

function elementTold(operand, element) {
  const block = operand.blocks > 1 ? ` of block ${element.block}` : "";
  return `${operand.name.toUpperCase()}[${element.row}, ${element.column}]${block}`;
}

/** The layout as `mfmadsl show --format json` prints it. */
function layoutJson(entry, operand, modifiers) {
  const elements = elementsOf(entry, operand, modifiers);
  if (entry.kind === "microkernel")
    return {
      kind: "microkernel", name: entry.name, operand: operand.name, shape: operand.shape,
      registers: operand.lanes, elements_per_register: operand.slots,
      broadcast: operand.broadcast,
      elements: elements.map((e) => ({
        row: e.row, column: e.column, register: e.lane, element: e.slot,
      })),
    };
  return {
    name: entry.name, operand: operand.name, shape: operand.shape, blocks: operand.blocks,
    wave: operand.lanes,
    elements: elements.map((e) => ({
      block: e.block, row: e.row, column: e.column, lane: e.lane, register: e.register,
      bits: [e.low, e.high],
    })),
  };
}

/** All operands as `mfmadsl export --as csv` writes them. */
function layoutsCsv(entry) {
  const lines = ["operand,block,row,column,lane,register,bits"];
  for (const operand of entry.operands) {
    const [rows] = operand.shape;
    for (let number = 0; number < operand.blocks * rows * operand.stored; number++) {
      const place = slotOf(operand, number);
      const first = (place % operand.slots) * operand.bits;
      const line = Math.floor(number / operand.stored);
      lines.push([
        operand.name, Math.floor(line / rows), line % rows, number % operand.stored,
        Math.floor(place / operand.slots), Math.floor(first / 32),
        `${first % 32}:${(first % 32) + operand.bits - 1}`,
      ].join(","));
    }
  }
  return lines.join("\n") + "\n";
}
