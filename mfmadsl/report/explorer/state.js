// What is seen, all of it in the address, so that a link shows the same.

const DATA = JSON.parse(document.getElementById("data").textContent);
const ENTRIES = new Map(DATA.entries.map((entry) => [entry.name, entry]));
const PLAIN = {
  entry: DATA.first, beside: "", operand: "a", view: "elements", colour: "lane",
  size: "fit",
  search: "", chip: "", cbsz: 0, abid: 0, blgp: 0, held: "",
};
const NUMBERS = { cbsz: 3, abid: 4, blgp: 3 }; // bits of each

let state = readState();

/** The state that the address says; what it says wrongly is left plain. */
function readState() {
  const found = { ...PLAIN };
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [key, value] of given) {
    if (!Object.hasOwn(PLAIN, key)) continue;
    if (Object.hasOwn(NUMBERS, key)) {
      if (/^\d+$/.test(value) && Number(value) < 1 << NUMBERS[key]) found[key] = Number(value);
    } else found[key] = value;
  }
  if (!ENTRIES.has(found.entry)) found.entry = PLAIN.entry;
  if (!ENTRIES.has(found.beside)) found.beside = "";
  if (!["elements", "lanes"].includes(found.view)) found.view = PLAIN.view;
  if (!["lane", "register"].includes(found.colour)) found.colour = PLAIN.colour;
  if (!["fit", "full"].includes(found.size)) found.size = PLAIN.size;
  if (found.chip && found.chip !== "CPU" && !DATA.chips.includes(found.chip)) found.chip = "";
  return found;
}

/** Change the state, the address and the page. */
function change(changes) {
  state = { ...state, ...changes };
  const told = Object.entries(state).filter(([key, value]) => value !== PLAIN[key]);
  const hash = new URLSearchParams(told).toString();
  const kept = "entry" in changes ? "pushState" : "replaceState"; // Back leads to the entry before
  history[kept](null, "", hash ? `#${hash}` : location.pathname + location.search);
  render();
}

/** The modifiers, as far as an entry takes them. */
function modifiersOf(entry) {
  const broadcasts = entry.modifiers.includes("cbsz_abid") && entry.blocks > 1;
  const index = entry.sparse && entry.modifiers.includes("cbsz_abid");
  const cbsz = broadcasts && 1 << state.cbsz <= entry.blocks ? state.cbsz : 0;
  const sets = index ? indexSets(entry) : 1 << cbsz;
  return {
    cbsz,
    abid: state.abid < sets ? state.abid : 0,
    blgp: entry.modifiers.includes("blgp") ? state.blgp : 0,
  };
}

/** How many sets of indices a register has for a sparse instruction. */
function indexSets(entry) {
  const index = entry.operands.find((operand) => operand.name === "index");
  return 32 / (index.slots * index.bits);
}

/** The entries that the search and the chip leave. */
function wanted() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  return DATA.entries.filter(
    (entry) =>
      (!state.chip || entry.chips.includes(state.chip)) &&
      words.every((word) => matches(entry, word)),
  );
}

/** Whether a word begins one of an entry's, so that f16 is no bf16, or one of its names, as anybody
    prints them; a text with other signs than letters and digits may stand as it is. */
function matches(entry, word) {
  const text = searchText(entry);
  const name = spelled(word);
  return text.split(/[^a-z0-9]+/).some((each) => each.startsWith(word)) ||
    (/[^a-z0-9]/.test(word) && text.includes(word)) ||
    (entry.spellings ?? []).some((each) => each.startsWith(name));
}

/** A name without the prefix and the dots that people write, as `spelled` in Python has it. */
function spelled(word) {
  const call = "llvm.amdgcn.";
  const text = word.startsWith(call)
    ? word.slice(call.length).replace(/(\.v\d+[a-z]+\d+)+$/, "").replaceAll(".", "_")
    : word;
  return text.replace(/^__builtin_amdgcn_/, "").replace(/^v_/, "");
}

function searchText(entry) {
  entry.searchText ??= [
    entry.name, entry.doc, `${entry.m}x${entry.n}x${entry.k}`, entry.call,
    ...Object.values(entry.types), ...entry.chips, ...(entry.aliases ?? []),
    ...entry.chips.flatMap((chip) => DATA.products[chip] ?? []),
    ...(entry.features ?? []), entry.sparse ? "sparse" : "dense", entry.scaled ? "scaled" : "",
    entry.kind,
  ].join(" ").toLowerCase();
  return entry.searchText;
}
