// The sections of the page but the explorer.

const FIRST = NARROW ? 4 : 24; // pictures that are shown before "show all" is pressed
const SELDOM = 0.005; // probabilities below this are not spoken of
const OPEN = ["summary", "maps", "components", "explorer"]; // sections that are open on a narrow screen, too

function section(id, title, lead, ...children) {
  const part = make("details", { open: !NARROW || OPEN.includes(id) }, make("summary", {}, make("h2", { id: `${id}-title` }, title)));
  if (lead) part.append(make("p", { class: "lead" }, lead));
  part.append(...children);
  part.addEventListener("toggle", () => part.open && pictures.redraw());
  const element = make("section", { id, "aria-labelledby": `${id}-title` }, part);
  document.querySelector("main").append(element);
  const short = title.split(",")[0];
  document.querySelector("nav ul").append(make("li", {}, make("a", { href: `#${id}`, onclick: () => (part.open = true) }, short)));
  return element;
}

function facts(pairs) {
  return make("dl", { class: "facts" }, ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

// Children in a grid, of which the first are shown and the rest on demand.
function limited(grid, children, what) {
  grid.append(...children);
  if (children.length <= FIRST) return [grid];
  const hide = (hidden) => Array.from(grid.children).forEach((child, k) => (child.hidden = hidden && k >= FIRST));
  hide(true);
  const button = make("button", { class: "more", type: "button", "aria-expanded": "false" }, `Show all ${children.length} ${what}`);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    button.textContent = open ? `Show all ${children.length} ${what}` : "Show fewer";
    hide(open);
    pictures.redraw();
  });
  grid.refresh = () => hide(button.getAttribute("aria-expanded") === "false");
  return [grid, button];
}

function key(...entries) {
  return make("p", { class: "key" }, ...entries.map((entry) => (Array.isArray(entry) ? make("span", {}, make("i", { class: entry[0], "aria-hidden": "true" }), entry[1]) : entry)));
}

function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)}\u00a0%`;
}

function summarySection(report) {
  const tiles = report.summary.map(({ label, value, note }) =>
    make("div", { class: "tile" }, make("dt", {}, label), make("dd", { class: "value" }, value), make("dd", { class: "remark" }, note)));
  section("summary", "In one look", null, make("dl", { class: "tiles" }, ...tiles), ...report.notes.map((note) => make("p", { class: "note" }, note)));
}

// A canvas in a figure; draw(canvas) is called at once, and whenever colours or sizes change.
function picture(page, label, caption, draw) {
  const canvas = make("canvas", { class: page.kind, role: "img", "aria-label": label });
  canvas.style.aspectRatio = String(page.view.aspect);
  const figure = make("figure", {}, canvas, make("figcaption", {}, ...caption));
  canvas.redraw = () => draw(canvas);
  page.canvases.push(canvas);
  if (page.kind === "mesh") makeTurnable(canvas, page.view, () => page.turned());
  return figure;
}

// The maps of a run whose rows are voxels, as slices.
function mapSection(report, page) {
  const found = report.maps;
  if (!found) return;
  const [count, voxels] = found.values.shape;
  const all = decode(found.values);
  const place = { ...page, kind: "volume", view: volumeView(found.layout) };
  const figures = Array.from({ length: count }, (_, j) => {
    const values = rowOf(all, j, voxels);
    const reach = largest(values) || 1;
    const scale = { low: -reach, high: reach, signed: true };
    const at = place.view.peak(values);
    const where = `largest at ${place.view.millimetres(at).map((mm) => tell(mm, 3)).join(", ")} mm`;
    const caption = [make("strong", {}, `Map ${j}`), make("br"), make("span", { class: "remark" }, where), make("br"), ramp(scale, "")];
    return picture(place, `Map ${j}, ${where}`, caption, (canvas) => place.view.paint(canvas, values, scale, { at }));
  });
  const all_of = report.components.count;
  const lead = `${count < all_of ? `The first ${count} of ${all_of} maps. ` : ""}What each voxel has of each component: its coefficients, posterior means. The components themselves are the time courses below.`;
  section("maps", "Maps", lead, make("p", { class: "key" }, "Three slices through the largest value of each; each has colours of its own."), ...limited(make("div", { class: "gallery volume" }), figures, "maps"));
}

function spectra({ frequencies, power }) {
  const figures = power.map((shares, j) => {
    const made = chart(`Spectrum of time course ${j}`, [0, 0.5], [0, tops(shares)], true);
    path(made, frequencies, shares, "curve");
    return make("figure", {}, made.svg, make("figcaption", {}, make("strong", {}, `Spectrum ${j}`)));
  });
  return [make("h3", {}, "Spectra"), make("p", { class: "lead" }, "The share of each frequency, in cycles per volume, in a time course's variance. The signal of the brain is slow; noise has all frequencies alike."),
    ...limited(make("div", { class: "charts small" }), figures, "spectra")];
}

function componentSection(report, page) {
  const { explained, on, reliability, stability, count, entries, scale: sizes } = report.components;
  const scale = { low: -largest(page.components), high: largest(page.components), signed: true };
  const figures = [];
  const extra = (values, j) => ({
    ...(page.kind === "volume" ? { at: page.view.peak(values) } : page.errors ? { errors: rowOf(page.errors, j, page.d) } : {}),
    off: page.off && rowOf(page.off, j, page.d),
  });
  if (page.mean) {
    const [low, high] = quantiles(page.mean, [0, 1]);
    const range = { low, high: high > low ? high : low + 1, signed: false };
    const caption = [make("strong", {}, "Mean"), ...(page.flat ? [] : [make("br"), ramp(range, "")])];
    figures.push(picture(page, "The mean", caption, (canvas) => page.view.paint(canvas, page.mean, range)));
  }
  for (let j = 0; j < page.shown; j++) {
    const values = rowOf(page.components, j, page.d);
    const remarks = [`explains ${percent(explained[j])}`];
    if (on) remarks.push(`on in ${percent(on[j], 0)}`);
    if (entries) remarks.push(`${Math.round(entries[j])} of ${page.d} entries on, scale ${tell(sizes[j], 2)}`);
    if (reliability && reliability[j] !== null) remarks.push(`reliability ${reliability[j].toFixed(2)}`);
    if (stability) remarks.push(`stability ${stability[j].toFixed(2)}`);
    const caption = [make("strong", {}, `Component ${j}`), ...remarks.flatMap((text) => [make("br"), make("span", { class: "remark" }, text)])];
    figures.push(picture(page, `Component ${j}: ${remarks.join(", ")}`, caption, (canvas) => page.view.paint(canvas, values, scale, extra(values, j))));
  }
  const lead = page.shown < count ? `The first ${page.shown} of ${count} components, by the variance that they explain.` : `By the share of the variance that they explain${on ? "; and the share of rows in which they are on" : ""}.`;
  const turning = page.kind === "mesh" ? "Drag, or focus and use the arrow keys, to turn all meshes; double-click to turn them back." : page.kind === "volume" ? "Three slices through the largest value of each." : "";
  const table = page.kind === "table" ? `${page.d > TOP ? `The ${TOP} columns with the largest values of each. ` : ""}${page.errors ? "Lines are standard errors." : ""}` : "";
  const grey = page.off ? " Grey: probably zero." : "";
  const legend = page.flat ? key(table + grey) : make("p", { class: "key" }, ramp(scale, ""), turning + grey);
  const title = report.maps ? "Time courses" : "Components";
  section("components", title, lead, legend, ...limited(make("div", { class: `gallery ${page.kind}` }), figures, "pictures"), ...(report.maps ? spectra(report.maps) : []));
}

function coefficientSection(report) {
  const found = report.coefficients;
  const figures = found.density.map((density, j) => {
    const prior = found.prior[Math.min(j, found.prior.length - 1)];
    const made = chart(`Coefficients of component ${j}, and the prior's density`, [found.edges[0], found.edges[found.edges.length - 1]], [0, 1.08 * found.top[j]], true);
    bars(made, found.edges, density);
    path(made, found.grid, prior.map((value) => Math.min(value, made.high)), "curve");
    found.atoms.forEach((atom, k) => found.weight[j][k] >= SELDOM && stem(made, atom, found.weight[j][k]));
    return make("figure", {}, made.svg, make("figcaption", {}, make("strong", {}, `Component ${j}`), make("br"), make("span", { class: "remark" }, atomsInWords(found, j))));
  });
  const single = found.atoms.length === 1 ? `exactly ${tell(found.atoms[0])}` : "single values";
  section("coefficients", "Coefficients, and their law",
    "Draws from the posterior of all rows together. Were the model true, they would follow the prior as it was learnt: a component whose bars do not follow the curve has another law.",
    key(["", "coefficients"], ["curve", found.prior.length > 1 ? "prior, as learnt for each component" : "prior, as learnt"], ...(found.atoms.length ? [["dot", `prior's probability of ${single}: the height of a picture is 100 %`]] : [])),
    ...limited(make("div", { class: "charts small" }), figures, "components"));
}

// How often coefficients have each of the values that have a probability of their own.
function atomsInWords(found, j) {
  const often = found.atoms.flatMap((atom, k) => (Math.max(found.share[j][k], found.weight[j][k]) < SELDOM ? [] : [`${tell(atom)} in ${percent(found.share[j][k], 0)} (prior ${percent(found.weight[j][k], 0)})`]));
  if (often.length) return `exactly ${often.join(", ")}`;
  return found.atoms.length ? `hardly ever exactly ${found.atoms.map((atom) => tell(atom)).join(" or ")}` : "";
}

// Coefficients by class: a thin line holds nine tenths of the rows of a class, a thick one half of them, and a dot is their median.
function classSection(report) {
  const labels = report.classes;
  if (!labels.length) return;
  const grid = make("div");
  const show = (found) => grid.replaceChildren(...limited(make("div", { class: "charts" }), found.quantiles.map((quantiles, j) => classChart(found, quantiles, j)), "components"));
  const choice = make("select", { id: "label" }, ...labels.map(({ name }, k) => make("option", { value: k }, name)));
  choice.addEventListener("change", () => show(labels[Number(choice.value)]));
  show(labels[0]);
  section("classes", "Classes, and their coefficients", "The coefficients of the rows of each class: the median, half of them, and nine tenths of them. Per cent: the share of their variance that is between classes.",
    make("div", { class: "bar-of-tools" }, make("label", {}, "Classes", choice)), grid);
}

function classChart(found, quantiles, j) {
  const all = quantiles.flat();
  const made = chart(`Coefficients of component ${j} by ${found.name}`, [Math.min(...all, 0), Math.max(...all, 0)], [0, found.classes.length], false, { left: 120, levels: false, height: 36 + 20 * found.classes.length });
  const line = (kind, from, to, y) => made.svg.append(shape("line", { class: kind, x1: made.x(from), x2: made.x(to), y1: y, y2: y }));
  quantiles.forEach(([p5, p25, p50, p75, p95], k) => {
    const y = made.y(found.classes.length - k - 0.5);
    const text = `${found.classes[k]} (${found.sizes[k]})`;
    made.svg.append(shape("text", { x: made.box.left - 8, y: y + 4, "text-anchor": "end" }, text.length > 20 ? `${text.slice(0, 19)}…` : text));
    line("range", p5, p95, y);
    line("half", p25, p75, y);
    made.svg.append(shape("circle", { class: "middle", cx: made.x(p50), cy: y, r: 3.5 }));
  });
  return make("figure", {}, made.svg, make("figcaption", {}, make("strong", {}, `Component ${j}`), make("span", { class: "remark" }, ` ${percent(found.between[j], 0)} between classes`)));
}

// The scale of numbers about zero: bars and lines have room for all of them and no more, and zero is the middle of colours.
function scaleAbout(values, flat) {
  const [low, high] = quantiles(values, flat ? [0, 1] : [0.005, 0.995]);
  const reach = Math.max(Math.abs(low), Math.abs(high), 0.1);
  return flat ? { low: Math.min(low, 0), high: Math.max(high, 0, low + 1e-3), signed: true } : { low: -reach, high: reach, signed: true };
}

function residualSection(report, page) {
  const found = report.residuals;
  const rms = decode(found.rms);
  const about = Float32Array.from(rms, (value) => value - 1);
  const scale = scaleAbout(about, page.flat);
  const map = picture(page, "Root mean square of each column's residuals", [make("strong", {}, "Root mean square of each column, less 1 "), make("br"), page.flat ? "" : ramp(scale, "")], (canvas) => page.view.paint(canvas, about, scale));
  const made = chart("Standardised residuals, and the normal density", [-5, 5], [0, tops(found.density, [0.42])]);
  bars(made, found.edges, found.density);
  const grid = Array.from({ length: 121 }, (_, k) => -5 + k / 12);
  path(made, grid, grid.map((x) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI)), "curve");
  const over = found.weights ? "residuals, over the standard deviation of the row's noise" : "residuals, over the noise's standard deviation";
  const histogram = make("figure", {}, made.svg, make("figcaption", {}, key(["", over], ["curve", "normal"])));
  const charts = make("div", {}, histogram, ...(found.weights ? [weightChart(found.weights)] : []));
  const rows = found.facts.map(({ what, found: seen, expected, off }) => make("tr", {}, make("td", {}, what), make("td", { class: off ? "mark off" : "mark" }, seen), make("td", {}, expected)));
  const head = make("tr", {}, ...["Check", "Found", "Noise alone"].map((word) => make("th", { scope: "col" }, word)));
  section("residuals", "Residuals", "What a draw of the coefficients leaves of each row. Were the model true, it would be its noise and nothing else.",
    make("div", { class: `pair residuals ${page.kind}` }, map, charts), make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))));
}

// The weights of rows under Student noise, on a scale of powers of ten.
function weightChart(found) {
  const made = chart("Weights of rows, and their density by Student noise", [found.edges[0], found.edges[found.edges.length - 1]], [0, tops(found.density, found.law)], false, { power: true });
  bars(made, found.edges, found.density);
  path(made, found.grid, found.law, "curve");
  made.svg.append(shape("line", { class: "stop", x1: made.x(found.outlying), x2: made.x(found.outlying), y1: made.y(made.low), y2: made.box.top }));
  return make("figure", {}, made.svg, make("figcaption", {}, key(["", "weights of rows"], ["curve", "by Student noise"], ["stop", `left of ${tell(10 ** found.outlying)}: outlying rows`])));
}

function likelihoodSection(report, page) {
  const found = report.likelihood;
  const made = chart("Log likelihood of rows", [found.edges[0], found.edges[found.edges.length - 1]], [0, tops(found.counts)]);
  bars(made, found.edges, found.counts);
  made.svg.append(shape("line", { class: "level", x1: made.x(found.mean), x2: made.x(found.mean), y1: made.y(made.low), y2: made.box.top }));
  const rows = found.outliers.map(({ place, id, value, others }) => {
    const labels = Object.entries(others).map(([name, label]) => `${name}: ${label}`).join(", ");
    const button = make("button", { type: "button", onclick: () => page.show(place), "aria-label": `Show row ${id} in the explorer` }, "Show");
    return make("tr", {}, make("td", {}, id), make("td", {}, labels), make("td", {}, tell(value)), make("td", {}, button));
  });
  const head = make("tr", {}, ...["Row", "", "Log p(x)", ""].map((word) => make("th", { scope: "col" }, word)));
  section("rows", "Rows, likely and not", "log p(x), the coefficients integrated out. Rows far on the left fit the model badly: look at them before anything else.",
    make("div", { class: "pair" }, make("figure", {}, made.svg, make("figcaption", {}, key(["", "rows"], ["curve", `mean ${tell(found.mean)}`]))),
      make("div", {}, make("h3", {}, "The least likely rows"), make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))))));
}

function convergenceSection(report) {
  const { iteration, burn_in: burnIn, stopped, traces } = report.history;
  const last = iteration[iteration.length - 1];
  const figures = traces.map(({ title, lines }) => {
    const [low, high] = quantiles(lines.flat().filter((value) => value !== null), [0, 1]);
    const made = chart(`${title} against the iteration`, [0, last], [low - 0.04 * (high - low), high + 0.04 * (high - low)]);
    if (burnIn) made.under.append(shape("rect", { class: "burn", x: made.x(0), width: made.x(burnIn) - made.x(0), y: made.box.top, height: made.y(made.low) - made.box.top }));
    lines.forEach((line) => path(made, iteration, line, lines.length > 3 ? "trace thin" : "trace"));
    if (stopped) made.svg.append(shape("line", { class: "stop", x1: made.x(stopped), x2: made.x(stopped), y1: made.y(made.low), y2: made.box.top }));
    return make("figure", {}, make("figcaption", {}, make("strong", {}, title)), made.svg);
  });
  const entries = [...(burnIn ? [["burn", `burn-in: full steps, ${burnIn} iterations`]] : []), ...(stopped ? [["stop", `stopped by itself after ${stopped}`]] : [])];
  section("convergence", "Convergence", "What was learnt, after each iteration.", key(...entries), make("div", { class: "charts" }, ...figures));
}

function dataSections(report) {
  section("data", "Data", null, facts(report.data));
  section("settings", "Settings", null, ...report.settings.flatMap(({ title, pairs }) => [make("h3", {}, title), facts(pairs)]));
}
