// The explorer: a row, taken apart into components that can be switched and set, and put together again.

function explorerSection(report, page) {
  const given = report.explorer;
  const [d, shown] = [page.d, page.shown];
  const X = decode(given.X);
  const [beta, std, on, offsets] = [given.beta, given.std, given.on, given.offset].map(decode);
  const width = shown + (offsets ? 1 : 0);
  const ones = new Float32Array(d).fill(1);
  const parts = Array.from({ length: width }, (_, j) => {
    const pattern = j < shown ? rowOf(page.components, j, d) : ones;
    const off = j < shown && page.off ? rowOf(page.off, j, d) : null;
    return { name: j < shown ? `Component ${j}` : "Offset of the row", pattern, off, reach: reachOf(pattern, page), norm: Math.sqrt(pattern.reduce((sum, value) => sum + value * value, 0)) };
  });
  const scales = explorerScales(X);
  const state = { row: 0, order: null, on: new Array(width).fill(true), value: new Float64Array(width) };
  const fittedValue = (j) => (j < shown ? beta[state.row * shown + j] : offsets[state.row]);
  const original = () => rowOf(X, state.row, d);

  function reconstruction() {
    const made = Float64Array.from(page.mean || new Float32Array(d));
    parts.forEach(({ pattern }, j) => {
      const weight = state.on[j] ? state.value[j] : 0;
      if (weight) for (let k = 0; k < d; k++) made[k] += weight * pattern[k];
    });
    return made;
  }

  // Root mean square error, and the share of the row's squared distance from the mean that is reconstructed.
  function quality(made) {
    const row = original();
    let [square, total, count] = [0, 0, 0];
    for (let k = 0; k < d; k++) {
      if (Number.isNaN(row[k])) continue;
      square += (row[k] - made[k]) ** 2;
      total += (row[k] - (page.mean ? page.mean[k] : 0)) ** 2;
      count += 1;
    }
    return { error: Math.sqrt(square / count), share: 1 - square / total };
  }

  // ---- pictures of the row

  const now = { made: null, residual: new Float32Array(d) };
  const three = [
    ["Original", () => original(), scales.plain],
    ["Reconstruction", () => now.made, scales.plain],
    ["Residual", () => now.residual, scales.signed],
  ].map(([name, values, scale]) => picture(page, name, [make("strong", {}, name)], (canvas) => {
    const under = name === "Reconstruction" ? original() : null;
    page.view.paint(canvas, values(), scale, { under, order: state.order });
  }));
  const stageCanvases = three.map((figure) => figure.querySelector("canvas"));
  stageCanvases.forEach((canvas, k) => (canvas.id = ["original", "reconstruction", "residual"][k]));
  const measure = make("div", { class: "measure" });
  const readout = make("div", { class: "readout", "aria-hidden": "true" });
  const status = make("div", { class: "readout", role: "status" });

  function update() {
    now.made = reconstruction();
    const row = original();
    for (let k = 0; k < d; k++) now.residual[k] = row[k] - now.made[k];
    const { error, share } = quality(now.made);
    measure.replaceChildren(
      make("span", {}, "Root mean square error ", make("b", { id: "error" }, tell(error))),
      make("span", {}, `noise ${tell(given.noise)}`),
      make("span", {}, "reconstructed ", make("b", {}, percent(share))),
      make("span", {}, `log p(x) ${tell(given.log_likelihood[state.row])}`));
    stageCanvases.forEach((canvas) => canvas.redraw());
  }

  // ---- a card for each component

  const cards = parts.map((part, j) => partCard(part, j));

  function partCard(part, j) {
    const reach = 1.2 * Math.max(...given.rows.map((_, i) => Math.abs(j < shown ? beta[i * shown + j] : offsets[i])), 1e-6);
    const check = make("input", { type: "checkbox", checked: true, id: `on-${j}` });
    check.setAttribute("aria-label", part.name);
    const only = make("button", { type: "button", title: "Switch all others off" }, "Only");
    only.setAttribute("aria-label", `Only ${part.name.toLowerCase()}`);
    const slider = make("input", { type: "range", min: -reach, max: reach, step: "any", "aria-label": `Coefficient of ${part.name.toLowerCase()}`, id: `slider-${j}` });
    const number = make("input", { type: "number", step: "any", "aria-label": `Coefficient of ${part.name.toLowerCase()}, as a number` });
    const remark = make("div", { class: "remark" });
    const values = new Float32Array(d);
    const order = page.kind === "table" ? topColumns(part.pattern, 8) : null;
    const figure = picture(page, `What ${part.name.toLowerCase()} adds`, [], (canvas) => {
      for (let k = 0; k < d; k++) values[k] = state.value[j] * part.pattern[k];
      page.view.paint(canvas, values, scales.signed, { order, off: part.off });
    });
    const head = make("div", { class: "head" }, make("label", {}, check, make("span", {}, j < shown ? part.name : "Offset")), only);
    const element = make("div", { class: "part" }, head, figure, make("div", { class: "set" }, slider, number), remark);
    const canvas = figure.querySelector("canvas");

    function refresh() {
      check.checked = state.on[j];
      element.classList.toggle("off", !state.on[j]);
      slider.value = state.value[j];
      if (document.activeElement !== number) number.value = Number(state.value[j].toPrecision(3));
      remark.replaceChildren(...remarkOf(j).flatMap((text) => [text, make("br")]));
      canvas.redraw();
    }
    function set(value) {
      if (!Number.isFinite(value)) return;
      state.value[j] = value;
      state.on[j] = true;
      refresh();
      update();
    }
    slider.addEventListener("input", () => set(Number(slider.value)));
    number.addEventListener("change", () => set(Number(number.value)));
    check.addEventListener("change", () => {
      state.on[j] = check.checked;
      refresh();
      update();
    });
    only.addEventListener("click", () => switchAll((other) => other === j));
    return { element, refresh, size: () => Math.abs(state.value[j]) * part.norm };
  }

  function remarkOf(j) {
    if (j >= shown) return [`fitted ${tell(fittedValue(j), 3)}`];
    const k = state.row * shown + j;
    return [`fitted ${tell(beta[k], 3)} ± ${tell(std[k], 2)}`, ...(on ? [`on: probability ${on[k].toFixed(2)}`] : [])];
  }

  function switchAll(wanted) {
    for (let j = 0; j < width; j++) state.on[j] = wanted(j);
    refreshAll();
  }

  function refreshAll() {
    cards.forEach((card) => card.refresh());
    update();
  }

  // ---- choosing a row

  const labels = (i) => Object.entries(given.others).map(([name, values]) => `${name}: ${values[i]}`).join(", ");
  const legends = page.flat ? [] : [ramp(scales.plain, "rows"), ramp(scales.signed, "residual and components")];
  const picker = make("select", { id: "row" }, ...given.ids.map((id, i) => make("option", { value: i }, id)));
  const search = make("input", { type: "search", placeholder: "part of an id", autocomplete: "off", id: "search", size: 12 });
  const matches = make("output", { id: "matches", for: "search" });
  const sorted = make("input", { type: "checkbox", checked: true });
  const grid = make("div", { class: `parts ${page.kind}` });
  const gridAndButton = limited(grid, cards.map((card) => card.element), "components");

  function arrange() {
    const order = cards.map((card, j) => ({ card, j }));
    if (sorted.checked) order.sort((a, b) => b.card.size() - a.card.size() || a.j - b.j);
    grid.append(...order.map(({ card }) => card.element));
    if (grid.refresh) grid.refresh();
  }

  function showRow(i) {
    state.row = (i + given.ids.length) % given.ids.length;
    picker.value = String(state.row);
    // the same columns of a table in all three pictures: those furthest from the mean
    if (page.kind === "table") state.order = topColumns(original().map((value, k) => value - (page.mean ? page.mean[k] : 0)), 12);
    reset();
    arrange();
    const more = labels(state.row);
    status.textContent = `Row ${given.ids[state.row]} (number ${given.rows[state.row]}), ${state.row + 1} of ${given.ids.length} here${more ? ` · ${more}` : ""}`;
  }

  function reset() {
    for (let j = 0; j < width; j++) state.value[j] = fittedValue(j);
    state.on.fill(true);
    scaleToRow(scales, page, original(), reconstruction(), parts.map(({ reach }, j) => reach * Math.abs(state.value[j])), given.noise);
    legends.forEach((legend) => legend.redraw());
    refreshAll();
  }

  picker.addEventListener("change", () => showRow(Number(picker.value)));
  sorted.addEventListener("change", arrange);
  // Show the first row whose id has the text in it, or the one after that which is shown.
  function find(next) {
    const wanted = search.value.trim().toLowerCase();
    const has = (test) => given.ids.flatMap((id, i) => (test(id.toLowerCase()) ? [i] : []));
    const found = [...new Set([...has((id) => id === wanted), ...has((id) => id.includes(wanted))])];
    matches.textContent = "";
    if (!wanted) return;
    const k = next ? (found.indexOf(state.row) + 1) % found.length : 0;
    if (found.length) showRow(found[k]);
    else status.textContent = `No row here has an id with “${search.value}”.`;
    matches.textContent = found.length ? `${k + 1} of ${found.length}${found.length > 1 ? " (Enter: next)" : ""}` : "none";
  }
  search.addEventListener("input", () => find(false));
  search.addEventListener("keydown", (event) => event.key === "Enter" && find(true));
  const button = (text, action, name) => make("button", { type: "button", onclick: action, id: name }, text);
  const tools = make("div", { class: "bar-of-tools" },
    button("‹ Previous", () => showRow(state.row - 1), "previous"), make("label", {}, "Row", picker), button("Next ›", () => showRow(state.row + 1), "next"),
    make("label", {}, make("span", {}, "Search ", matches), search), ...viewTools(page, () => stageAndCards()));
  const switches = make("div", { class: "bar-of-tools" },
    make("h3", {}, "What each component adds"), button("Reset", reset, "reset"), button("All off", () => switchAll(() => false), "all-off"), button("All on", () => switchAll(() => true), "all-on"),
    make("label", { class: "check" }, sorted, "Largest first"));
  const stage = make("div", { class: `stage ${page.kind}` }, ...three, measure, make("p", { class: "key" }, ...legends));
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) showRow(state.row + step);
  });
  if (page.kind !== "mesh") stageCanvases[0].tabIndex = 0;
  stageCanvases.forEach((canvas) => canvas.addEventListener("pointermove", (event) => {
    const area = canvas.getBoundingClientRect();
    const found = page.view.locate((event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height, canvas);
    if (!found) return;
    const k = found.index;
    readout.textContent = `${found.label}: original ${tell(original()[k])}, reconstruction ${tell(now.made[k])}, residual ${tell(now.residual[k])}`;
  }));

  function stageAndCards() {
    [...stageCanvases, ...grid.querySelectorAll("canvas")].forEach((canvas) => canvas.redraw());
  }

  section("explorer", "Explorer", "Choose a row; switch components, or drag their coefficients, and see what becomes of its reconstruction.",
    tools, status, make("div", { class: "bench" }, make("div", { class: "seen" }, stage, readout), make("div", { class: "cards" }, switches, ...gridAndButton)));
  page.show = (i) => {
    showRow(i);
    document.getElementById("explorer").scrollIntoView();
    picker.focus({ preventScroll: true });
  };
  showRow(0);
  return {
    row: () => given.rows[state.row],
    showRow,
    coefficients: () => Array.from(state.value, (value, j) => (state.on[j] ? value : 0)),
    reconstruction: () => Array.from(reconstruction()),
    error: () => quality(reconstruction()).error,
  };
}

// Rows keep their colours from row to row.
function explorerScales(X) {
  const [low, high] = quantiles(X, [0.001, 0.999]);
  return { plain: { low, high: high > low ? high : low + 1, signed: false }, signed: { low: -1, high: 1, signed: true } };
}

// How far numbers go from zero; a few may go further where they are colours.
function reachOf(values, page) {
  return Math.max(...quantiles(values, page.flat ? [0, 1] : [0.005, 0.995]).map(Math.abs));
}

// What is added and left, and the heights of lines, have the scale of their row.
function scaleToRow(scales, page, row, made, added, noise) {
  const residual = row.map((value, k) => value - made[k]);
  const reach = Math.max(2 * noise, reachOf(residual, page), ...added);
  Object.assign(scales.signed, { low: -reach, high: reach });
  if (!page.flat) return;
  const all = [...quantiles(row, [0, 1]), ...quantiles(made, [0, 1])];
  Object.assign(scales.plain, { low: Math.min(...all), high: Math.max(Math.max(...all), Math.min(...all) + noise) });
}

// Controls of how rows are seen: the colours, and the slices of volumes.
function viewTools(page, redraw) {
  const tools = [];
  if (!page.flat) {
    const names = { grey: "grey", ink: "grey, inverted", viridis: "viridis", signed: "blue to red" };
    const choice = make("select", { id: "colours" }, ...Object.entries(names).map(([value, text]) => make("option", { value, selected: value === theme.plain }, text)));
    choice.addEventListener("change", () => {
      theme.plain = choice.value;
      pictures.redraw();
    });
    tools.push(make("label", {}, "Colours of rows", choice));
  }
  if (page.kind === "volume") {
    const words = (k) => `${"xyz"[k]} ${page.view.at[k]} (${tell(page.view.millimetres(page.view.at)[k], 3)} mm)`;
    for (let k = 0; k < 3; k++) {
      const text = make("span", {}, words(k));
      const slider = make("input", { type: "range", min: 0, max: page.view.shape[k] - 1, value: page.view.at[k], step: 1, id: `slice-${"xyz"[k]}` });
      slider.addEventListener("input", () => {
        page.view.at[k] = Number(slider.value);
        text.textContent = words(k);
        redraw();
      });
      tools.push(make("label", {}, text, slider));
    }
  }
  return tools;
}
