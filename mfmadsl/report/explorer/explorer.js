// The page around the panes: the list, the keys, and what changes with the state.

let comparing = false; // the next choice goes beside
const list = document.getElementById("list");
const search = document.getElementById("search");
const panes = document.getElementById("panes");
const keys = document.getElementById("keys");
let drawn = {};

function render() {
  const { search: words, chip, entry, beside, ...look } = state;
  if (search.value !== words) search.value = words;
  const found = wanted();
  if (drawn.list !== JSON.stringify([words, chip])) {
    list.replaceChildren(
      ...found.map((each) =>
        html(
          "li", { role: "option", "data-name": each.name, onclick: () => choose(each.name) },
          html("b", {}, each.name), html("small", {}, each.chips.join(" ")),
        ),
      ),
    );
    const noun = found.length === 1 ? "entry" : "entries";
    document.getElementById("count").textContent = `${found.length} ${noun}`;
  }
  for (const item of list.children) {
    const chosen = [entry, beside].includes(item.dataset.name);
    item.setAttribute("aria-selected", String(chosen));
  }
  if (drawn.entry !== entry)
    list.querySelector(`[data-name="${entry}"]`)?.scrollIntoView({ block: "nearest" });
  for (const button of document.getElementById("chips").children)
    button.setAttribute("aria-pressed", String(button.dataset.chip === chip));
  panes.classList.toggle("comparing", comparing);
  const now = JSON.stringify([entry, beside, look]);
  if (drawn.panes !== now) {
    const focused = document.activeElement?.closest("td") ? state.held : "";
    panes.replaceChildren(
      pane(ENTRIES.get(entry), false), ...(beside ? [pane(ENTRIES.get(beside), true)] : []),
    );
    panes.querySelectorAll(".grid").forEach(fit);
    if (focused) panes.querySelector("td.here")?.focus();
  }
  document.title = `${entry} · mfmadsl`;
  drawn = { list: JSON.stringify([words, chip]), entry, panes: now };
}

function choose(name) {
  if (comparing) {
    comparing = false;
    change({ beside: name, held: "" });
  } else change({ entry: name, held: "" });
}

function startComparison() {
  comparing = !comparing;
  render();
}

/** The next or the previous entry of the list. */
function step(by) {
  const names = wanted().map((each) => each.name);
  const at = names.indexOf(comparing ? state.beside : state.entry);
  const next = names[Math.min(Math.max(at + by, 0), names.length - 1)];
  if (next) choose(next);
}

/** The operand of that number, counted from 1, of the entry. */
function chooseOperand(number) {
  const operand = ENTRIES.get(state.entry).operands[number - 1];
  if (operand) change({ operand: operand.name, held: "" });
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("theme", name);
  } catch {
    // Then it lasts as long as the page.
  }
}

function otherTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  setTheme((document.documentElement.dataset.theme ?? dark) === "dark" ? "light" : "dark");
}

function letGo() {
  if (document.activeElement === search) search.blur();
  else if (comparing) startComparison();
  else if (state.held) change({ held: "" });
  else if (state.beside) change({ beside: "" });
}

const KEYS = {
  "/": () => search.focus(),
  ArrowDown: () => step(1), ArrowUp: () => step(-1),
  v: () => change({ view: state.view === "elements" ? "lanes" : "elements", held: "" }),
  c: () => change({ colour: state.colour === "lane" ? "register" : "lane" }),
  "=": startComparison, t: otherTheme, "?": () => keys.showModal(), Escape: letGo,
};
for (const number of range(6)) KEYS[number + 1] = () => chooseOperand(number + 1);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const writing = event.target.matches("input, select, textarea");
  if (writing && !["Escape", "ArrowDown", "ArrowUp"].includes(event.key)) return;
  if (event.target.matches("select") || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
search.addEventListener("input", () => change({ search: search.value }));
search.addEventListener("keydown", (event) => {
  const [first] = wanted();
  if (event.key === "Enter" && first) choose(first.name);
});
document.getElementById("theme").addEventListener("click", otherTheme);
document.getElementById("help").addEventListener("click", () => keys.showModal());
for (const name of ["hashchange", "popstate"])
  addEventListener(name, () => {
    state = readState();
    render();
  });
const chips = [...DATA.chips, ...(DATA.entries.some((e) => e.chips[0] === "CPU") ? ["CPU"] : [])];
document.getElementById("chips").append(
  ...chips.map((chip) =>
    html("button", { "data-chip": chip,
      onclick: () => change({ chip: state.chip === chip ? "" : chip }) }, chip),
  ),
);
try {
  const theme = localStorage.getItem("theme");
  if (theme) setTheme(theme);
} catch {
  // A page of a file may have no storage: the system's theme then.
}
render();
